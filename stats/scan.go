package stats

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// scan reads a line without allocating. It says false for anything it is not sure about, and never accepts what
// encoding/json would refuse: the caller asks encoding/json then.
func (l *line) scan(b []byte) bool {
	i := space(b, 0)
	if i >= len(b) || b[i] != '{' {
		return false
	}
	i = space(b, i+1)
	for i < len(b) && b[i] == '"' {
		end, form := stringEnd(b, i+1)
		if end < 0 || form != ascii {
			return false
		}
		key := b[i+1 : end]
		i = space(b, end+1)
		if i >= len(b) || b[i] != ':' {
			return false
		}
		if i = l.value(key, b, space(b, i+1)); i < 0 {
			return false
		}
		i = space(b, i)
		if i >= len(b) {
			return false
		}
		if b[i] == '}' {
			return space(b, i+1) == len(b)
		}
		if b[i] != ',' {
			return false
		}
		i = space(b, i+1)
	}
	return false
}

// value reads the value at i into the field that key names and returns where it ends, or -1.
func (l *line) value(key, b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch c := b[i]; {
	case c == '"':
		end, form := stringEnd(b, i+1)
		if end < 0 || !l.setText(key, b[i+1:end], form) {
			return -1
		}
		return end + 1
	case c == '-' || c >= '0' && c <= '9':
		v, end := number(b, i)
		if end < 0 || !l.number(key, v) && (l.text(key) != nil || other(key)) {
			return -1
		}
		return end
	case c == '[' && string(key) == "files":
		end, n := skipArray(b, i, 1)
		l.fileCount, l.filesKnown = min(n, 1000), true
		return end
	}
	return l.literal(key, b, i)
}

func (l *line) literal(key, b []byte, i int) int {
	end, _ := skip(b, i, 0)
	if end < 0 {
		return -1
	}
	if string(key) == "verification_passed" {
		switch b[i] {
		case 't':
			l.passed = yes
		case 'f':
			l.passed = no
		case 'n':
			l.passed = 0
		default:
			return -1
		}
		return end
	}
	if string(key) == "files" && b[i] == 'n' { // every line of analyze may have it
		l.fileCount, l.filesKnown = 0, false
		return end
	}
	if l.text(key) != nil || other(key) || isNumber(key) {
		return -1
	}
	return end
}

// other names the fields that are neither plain texts nor numbers.
func other(key []byte) bool {
	return string(key) == "timestamp" || string(key) == "verification_passed" || string(key) == "task"
}

func (l *line) setText(key, text []byte, form stringForm) bool {
	if field := l.text(key); field != nil {
		*field = text
		return form == ascii || form == unicode && utf8.Valid(text)
	}
	if string(key) == "timestamp" {
		l.setTime(text)
		return form == ascii
	}
	if string(key) == "task" {
		l.task, l.escaped = text, form != ascii
		return true
	}
	// Most texts are none of ours (id, session); a number's name with a text in it is for encoding/json.
	return !isNumber(key) && !other(key)
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

type stringForm uint8

const (
	ascii stringForm = iota
	unicode
	escaped
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// stringEnd finds the closing quote of a string that begins at i, eight bytes at a step, and -1 if encoding/json
// would not take the string.
func stringEnd(b []byte, i int) (end int, form stringForm) {
	for {
		for i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			quote, slash := w^('"'*ones), w^('\\'*ones)
			// The lowest mark is exact; a borrow can only set false ones above it.
			marks := ((quote-ones)&^quote | (slash-ones)&^slash | (w-' '*ones)&^w) & highs
			if w&highs != 0 && form == ascii {
				form = unicode // may be past the end of this string: costs a check, nothing else
			}
			if marks != 0 {
				i += bits.TrailingZeros64(marks) / 8
				break
			}
			i += 8
		}
		for i < len(b) && b[i] != '"' && b[i] != '\\' && b[i] >= ' ' {
			if b[i] >= 0x80 && form == ascii {
				form = unicode
			}
			i++
		}
		switch {
		case i >= len(b) || b[i] < ' ':
			return -1, form
		case b[i] == '"':
			return i, form
		}
		form = escaped
		if i = escapeEnd(b, i); i < 0 {
			return -1, form
		}
	}
}

func escapeEnd(b []byte, i int) int {
	if i+1 >= len(b) {
		return -1
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
		if i+6 > len(b) {
			return -1
		}
		for _, c := range b[i+2 : i+6] {
			if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
				return -1
			}
		}
		return i + 6
	}
	return -1
}

// number reads a plain decimal with at most six places in millionths; -1 for every other form of number.
func number(b []byte, i int) (v int64, end int) {
	negative := b[i] == '-'
	if negative {
		i++
	}
	from := i
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		v = v*10 + int64(b[i]-'0')
		i++
	}
	if n := i - from; n == 0 || n > 12 || n > 1 && b[from] == '0' {
		return 0, -1
	}
	v *= million
	if i < len(b) && b[i] == '.' {
		i++
		from, scale := i, int64(million/10)
		for i < len(b) && b[i] >= '0' && b[i] <= '9' {
			v += int64(b[i]-'0') * scale
			scale /= 10
			i++
		}
		if n := i - from; n == 0 || n > 6 {
			return 0, -1
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		return 0, -1
	}
	if negative {
		v = -v
	}
	return v, i
}

// skip steps over any value and says whether it was a container's worth of elements; -1 if it is not plain JSON.
func skip(b []byte, i, depth int) (end, elements int) {
	if i >= len(b) || depth > 16 {
		return -1, 0
	}
	switch c := b[i]; {
	case c == '"':
		if end, _ := stringEnd(b, i+1); end >= 0 {
			return end + 1, 0
		}
	case c == '-' || c >= '0' && c <= '9':
		_, end := number(b, i)
		return end, 0
	case c == '[':
		return skipArray(b, i, depth+1)
	case c == 't' && i+4 <= len(b) && string(b[i:i+4]) == "true", c == 'n' && i+4 <= len(b) && string(b[i:i+4]) == "null":
		return i + 4, 0
	case c == 'f' && i+5 <= len(b) && string(b[i:i+5]) == "false":
		return i + 5, 0
	}
	return -1, 0 // objects inside are rare enough for encoding/json
}

func skipArray(b []byte, i, depth int) (end, elements int) {
	i = space(b, i+1)
	if i < len(b) && b[i] == ']' {
		return i + 1, 0
	}
	for {
		if i, _ = skip(b, i, depth); i < 0 {
			return -1, 0
		}
		elements++
		i = space(b, i)
		if i >= len(b) {
			return -1, 0
		}
		switch b[i] {
		case ']':
			return i + 1, elements
		case ',':
			i = space(b, i+1)
		default:
			return -1, 0
		}
	}
}
