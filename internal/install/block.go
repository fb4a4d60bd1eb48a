package install

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// comment is how a file format writes the two marker lines.
type comment struct{ open, close string }

var (
	markdown = comment{"<!-- ", " -->"}
	hash     = comment{"# ", ""}
)

// blockVersion goes into the marker, with the number of line ends that were put before it, so that taking the block out
// leaves the text as it was.
const blockVersion = 1

var errMarkers = errors.New("its localllm markers are damaged: one of the pair is missing, or there are two pairs")

// Compiled at first use: the server starts with every session, and most need no marker.
var marker = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^(?:<!-- |# )localllm:(begin v(\d+) n(\d)|end)(?: -->)?\r?(?:\n|\z)`)
})

// findBlock gives where the block starts, with the line ends before it, and ends; found is false where there is none.
func findBlock(text []byte) (from, to int, found bool, err error) {
	hits := marker().FindAllSubmatchIndex(text, -1)
	if len(hits) == 0 {
		return 0, 0, false, nil
	}
	if len(hits) != 2 || hits[0][4] < 0 || hits[1][4] >= 0 {
		return 0, 0, false, errMarkers
	}
	from = hits[0][0]
	gap, err := strconv.Atoi(string(text[hits[0][6]:hits[0][7]]))
	if err != nil {
		return 0, 0, false, errMarkers
	}
	ending := "\n"
	if bytes.HasSuffix(text[:hits[0][1]], []byte("\r\n")) {
		ending = "\r\n"
	}
	for range gap {
		from = len(bytes.TrimSuffix(text[:from], []byte(ending)))
	}
	return from, hits[1][1], true, nil
}

// setBlock puts body between markers at the end of the text, or where they are already.
func setBlock(text []byte, c comment, body string) ([]byte, error) {
	from, to, found, err := findBlock(text)
	if err != nil {
		return nil, err
	}
	if !found {
		from, to = len(text), len(text)
	}
	before := text[:from]
	gap := 1
	switch {
	case len(before) == 0:
		gap = 0
	case before[len(before)-1] != '\n':
		gap = 2
	}
	block := strings.Repeat("\n", gap) + fmt.Sprintf("%slocalllm:begin v%d n%d%s\n", c.open, blockVersion, gap, c.close) +
		strings.TrimSpace(body) + "\n" + c.open + "localllm:end" + c.close + "\n"
	block = strings.ReplaceAll(block, "\n", lineEnd(text))
	return splice(text, from, to, block), nil
}

// removeBlock takes the block out.
func removeBlock(text []byte) ([]byte, error) {
	from, to, found, err := findBlock(text)
	if err != nil || !found {
		return text, err
	}
	return splice(text, from, to, ""), nil
}
