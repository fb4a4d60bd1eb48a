package practice

import "strings"

// A byte-level vocabulary writes each byte as one printable character: those that print as themselves, the others from U+0100 on.
var byteRune = func() (table [256]rune) {
	next := rune(256)
	for b := range 256 {
		if b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xAC || b >= 0xAE {
			table[b] = rune(b)
			continue
		}
		table[b] = next
		next++
	}
	return table
}()

// ByteText is how the vocabulary stores these bytes.
func ByteText(text []byte) string {
	var out strings.Builder
	for _, b := range text {
		out.WriteRune(byteRune[b])
	}
	return out.String()
}
