// Command train learns the practice model's merges from source files named on its command line, and prints them, the most frequent first.
// It is run by hand: `find DIR -name '*.go' | go run ./test/practice/train > internal/practice/merges.txt`.
package main

import (
	"bufio"
	"fmt"
	"os"
	"unicode"

	"localllm/internal/practice"
)

const merges = 6000

type pair struct{ left, right string }

func main() {
	words := map[string]int{}
	files := bufio.NewScanner(os.Stdin)
	for files.Scan() {
		text, err := os.ReadFile(files.Text())
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		for _, word := range split([]rune(string(text))) {
			words[word]++
		}
	}
	learn(words)
}

// split cuts text about as the qwen2 pre-tokenizer does; being off by a rare case only costs a merge.
func split(text []rune) []string {
	var words []string
	for i := 0; i < len(text); {
		j := i
		switch {
		case unicode.IsLetter(text[i]) || i+1 < len(text) && !unicode.IsNumber(text[i]) && text[i] != '\n' && text[i] != '\r' && unicode.IsLetter(text[i+1]):
			for j++; j < len(text) && unicode.IsLetter(text[j]); {
				j++
			}
		case unicode.IsNumber(text[i]):
			j++
		case unicode.IsSpace(text[i]) && !(text[i] == ' ' && i+1 < len(text) && mark(text[i+1])):
			j = blank(text, i)
		default:
			for j++; j < len(text) && mark(text[j]); {
				j++
			}
			for j < len(text) && (text[j] == '\n' || text[j] == '\r') {
				j++
			}
		}
		words = append(words, string(text[i:j]))
		i = j
	}
	return words
}

func mark(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsSpace(r)
}

// blank ends a run of white space: after its last newline, or before the one character that goes with the next word.
func blank(text []rune, i int) int {
	j, newline := i, -1
	for j < len(text) && unicode.IsSpace(text[j]) {
		if text[j] == '\n' || text[j] == '\r' {
			newline = j
		}
		j++
	}
	if newline >= 0 {
		return newline + 1
	}
	if j < len(text) && j-i > 1 {
		return j - 1
	}
	return j
}

func learn(words map[string]int) {
	type entry struct {
		symbols []string
		count   int
	}
	var entries []entry
	for word, count := range words {
		if count < 3 {
			continue
		}
		var symbols []string
		for _, r := range practice.ByteText([]byte(word)) {
			symbols = append(symbols, string(r))
		}
		entries = append(entries, entry{symbols, count})
	}
	counts := map[pair]int{}
	where := map[pair]map[int]bool{}
	add := func(i, sign int) {
		e := entries[i]
		for k := 1; k < len(e.symbols); k++ {
			p := pair{e.symbols[k-1], e.symbols[k]}
			counts[p] += sign * e.count
			if where[p] == nil {
				where[p] = map[int]bool{}
			}
			where[p][i] = true
		}
	}
	for i := range entries {
		add(i, 1)
	}
	for range merges {
		best := pair{}
		for p, count := range counts {
			if top := counts[best]; count > top || count == top && (p.left < best.left || p.left == best.left && p.right < best.right) {
				best = p
			}
		}
		if counts[best] == 0 {
			return
		}
		fmt.Println(best.left, best.right)
		for i := range where[best] {
			add(i, -1)
			entries[i].symbols = join(entries[i].symbols, best)
			add(i, 1)
		}
		delete(counts, best)
	}
}

func join(symbols []string, p pair) []string {
	out := symbols[:0:0]
	for i := 0; i < len(symbols); i++ {
		if i+1 < len(symbols) && symbols[i] == p.left && symbols[i+1] == p.right {
			out = append(out, p.left+p.right)
			i++
			continue
		}
		out = append(out, symbols[i])
	}
	return out
}
