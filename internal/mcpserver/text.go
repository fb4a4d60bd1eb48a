package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Text is a result as indented lines for a reader who sees no JSON: the same fields in the same order. Empty values
// are left out; nothing else is.
func Text(result any) string {
	raw, err := json.Marshal(result)
	if err != nil {
		return fmt.Sprint(result)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var t texter
	t.value(d, "", 0)
	return strings.TrimRight(t.b.String(), "\n")
}

type texter struct{ b strings.Builder }

// value writes what comes next in d. lead is what stands before it on its line, its name or a dash.
func (t *texter) value(d *json.Decoder, lead string, depth int) {
	token, err := d.Token()
	if err != nil {
		return
	}
	switch v := token.(type) {
	case json.Delim:
		if v == '{' {
			t.object(d, lead, depth)
		} else {
			t.array(d, lead, depth)
		}
	case nil:
	case string:
		if v == "" {
			return
		}
		if !strings.Contains(v, "\n") {
			t.line(depth, lead+v)
			return
		}
		t.line(depth, strings.TrimRight(lead, " "))
		for l := range strings.SplitSeq(strings.TrimRight(v, "\n"), "\n") {
			t.line(depth+1, l)
		}
	default:
		t.line(depth, lead+fmt.Sprint(v))
	}
}

func (t *texter) object(d *json.Decoder, lead string, depth int) {
	inner := texter{}
	in := depth
	if lead != "" {
		in++
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return
		}
		inner.value(d, fmt.Sprintf("%v: ", name), in)
	}
	_, _ = d.Token()
	t.nested(lead, depth, inner.b.String())
}

func (t *texter) array(d *json.Decoder, lead string, depth int) {
	inner := texter{}
	plain := true
	var items []string
	for d.More() {
		item := texter{}
		item.value(d, "- ", depth+1)
		s := item.b.String()
		inner.b.WriteString(s)
		if strings.Count(s, "\n") > 1 || len(s) > 60 {
			plain = false
		}
		items = append(items, strings.TrimPrefix(strings.TrimSpace(s), "- "))
	}
	_, _ = d.Token()
	if plain && len(items) > 0 && len(strings.Join(items, ", ")) < 100 {
		t.line(depth, lead+strings.Join(items, ", "))
		return
	}
	t.nested(lead, depth, inner.b.String())
}

// nested writes a block under its lead; a dash takes the block's first line onto its own.
func (t *texter) nested(lead string, depth int, block string) {
	switch {
	case block == "":
	case lead == "":
		t.b.WriteString(block)
	case lead == "- ":
		t.line(depth, "- "+strings.TrimLeft(block, " "))
	default:
		t.line(depth, strings.TrimRight(lead, " "))
		t.b.WriteString(block)
	}
}

func (t *texter) line(depth int, s string) {
	t.b.WriteString(strings.Repeat("  ", depth))
	t.b.WriteString(strings.TrimRight(s, "\n"))
	t.b.WriteByte('\n')
}
