package install

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/tailscale/hujson"
)

// setMember puts value at path into the JSON text, and changes no byte that it doesn't have to: comments, order and
// layout stay. Where an object is there already, its own further members stay too.
func setMember(text []byte, path []string, value json.RawMessage) ([]byte, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	root, err := hujson.Parse(text)
	if err != nil {
		return nil, err
	}
	v := &root
	for depth, name := range path {
		obj, ok := v.Value.(*hujson.Object)
		if !ok {
			return nil, fmt.Errorf("%s is no object", where(path[:depth]))
		}
		i, err := member(obj, name)
		if err != nil {
			return nil, err
		}
		if i < 0 {
			for j := len(path) - 1; j > depth; j-- {
				value = json.RawMessage(fmt.Sprintf("{%s:%s}", []byte(hujson.String(path[j])), value))
			}
			return insertMember(text, v, obj, name, value), nil
		}
		v = &obj.Members[i].Value
	}
	ours, err := hujson.Parse(value)
	if err != nil {
		return nil, err
	}
	want, isObject := ours.Value.(*hujson.Object)
	if _, ok := v.Value.(*hujson.Object); ok && isObject {
		for _, m := range want.Members {
			name := literal(m.Name)
			if text, err = setMember(text, append(path[:len(path):len(path)], name), m.Value.Pack()); err != nil {
				return nil, err
			}
		}
		return text, nil
	}
	if same(v.Pack(), value) {
		return text, nil
	}
	return splice(text, v.StartOffset, v.EndOffset, layout(text, value, lineIndent(text, v.StartOffset), true)), nil
}

// removeMember takes path out of the JSON text with the comma and the white space that came with it.
func removeMember(text []byte, path []string) ([]byte, error) {
	last := len(path) - 1
	v, err := lookup(text, path[:last])
	if err != nil || v == nil {
		return text, err
	}
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		return text, nil
	}
	i, err := member(obj, path[last])
	if err != nil || i < 0 {
		return text, err
	}
	return cutMember(text, v, obj, i), nil
}

// lookup is the value at path, nil if it is not there.
func lookup(text []byte, path []string) (*hujson.Value, error) {
	root, err := hujson.Parse(text)
	if err != nil {
		return nil, err
	}
	v := &root
	for _, name := range path {
		obj, ok := v.Value.(*hujson.Object)
		if !ok {
			return nil, nil
		}
		i, err := member(obj, name)
		if err != nil || i < 0 {
			return nil, err
		}
		v = &obj.Members[i].Value
	}
	return v, nil
}

// emptyObject reports whether path names an object with nothing in it, not even a comment.
func emptyObject(text []byte, path ...string) bool {
	v, err := lookup(text, path)
	if err != nil || v == nil {
		return false
	}
	obj, ok := v.Value.(*hujson.Object)
	return ok && len(obj.Members) == 0 && len(bytes.TrimSpace(obj.AfterExtra)) == 0
}

// valueAt is the plain JSON at path, nil if it is not there.
func valueAt(text []byte, path ...string) json.RawMessage {
	v, err := lookup(text, path)
	if err != nil || v == nil {
		return nil
	}
	plain := v.Clone()
	plain.Standardize()
	return bytes.TrimSpace(plain.Pack())
}

func insertMember(text []byte, v *hujson.Value, obj *hujson.Object, name string, value json.RawMessage) []byte {
	n := len(obj.Members)
	many := n == 0 || bytes.ContainsRune(text[v.StartOffset:v.EndOffset], '\n')
	outer := lineIndent(text, v.StartOffset)
	indent := outer + indentUnit(text)
	if n > 0 && many {
		indent = lineIndent(text, obj.Members[n-1].Name.StartOffset)
	}
	newline := lineEnd(text)
	lead := " "
	if many {
		lead = newline + indent
	}
	made := lead + string(hujson.String(name)) + ": " + layout(text, value, indent, many)
	// What stands between the last member, or its comma, and the closing brace; ours goes behind its last comment.
	inside := v.EndOffset - 1 - len(obj.AfterExtra)
	at := inside + len(bytes.TrimRight(obj.AfterExtra, " \t\r\n"))
	switch {
	case n == 0:
		tail := ""
		if !bytes.ContainsRune(text[at:v.EndOffset], '\n') {
			tail = newline + outer
			return splice(text, at, v.EndOffset-1, made+tail)
		}
		return splice(text, at, at, made)
	case obj.Members[n-1].Value.AfterExtra != nil: // a trailing comma
		return splice(text, at, at, made+",")
	}
	text = splice(text, at, at, made)
	end := obj.Members[n-1].Value.EndOffset
	return splice(text, end, end, ",")
}

func cutMember(text []byte, v *hujson.Value, obj *hujson.Object, i int) []byte {
	n := len(obj.Members)
	m := obj.Members[i]
	before := m.Name.BeforeExtra
	start := m.Name.StartOffset - (len(before) - len(bytes.TrimRight(before, " \t\r\n")))
	end := m.Value.EndOffset
	if i < n-1 || m.Value.AfterExtra != nil {
		return splice(text, start, end+len(m.Value.AfterExtra)+1, "")
	}
	if n == 1 && len(bytes.TrimSpace(before)) == 0 && len(bytes.TrimSpace(obj.AfterExtra)) == 0 {
		return splice(text, v.StartOffset+1, v.EndOffset-1, "")
	}
	text = splice(text, start, end, "")
	if i > 0 {
		comma := obj.Members[i-1].Value
		at := comma.EndOffset + len(comma.AfterExtra)
		text = splice(text, at, at+1, "")
	}
	return text
}

func member(obj *hujson.Object, name string) (int, error) {
	found := -1
	for i, m := range obj.Members {
		if literal(m.Name) == name {
			if found >= 0 {
				return -1, fmt.Errorf("%q is there twice", name)
			}
			found = i
		}
	}
	return found, nil
}

func literal(v hujson.Value) string {
	l, ok := v.Value.(hujson.Literal)
	if !ok {
		return ""
	}
	return l.String()
}

func where(path []string) string {
	if len(path) == 0 {
		return "the whole"
	}
	return strings.Join(path, ".")
}

func same(a, b []byte) bool {
	a, errA := hujson.Standardize(bytes.Clone(a))
	b, errB := hujson.Standardize(bytes.Clone(b))
	var x, y any
	return errA == nil && errB == nil && json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

func splice(text []byte, from, to int, with string) []byte {
	out := make([]byte, 0, len(text)+len(with))
	out = append(out, text[:from]...)
	out = append(out, with...)
	return append(out, text[to:]...)
}

func layout(text []byte, value json.RawMessage, indent string, many bool) string {
	var b bytes.Buffer
	if !many || json.Indent(&b, value, indent, indentUnit(text)) != nil {
		return string(value)
	}
	return strings.ReplaceAll(b.String(), "\n", lineEnd(text))
}

func lineEnd(text []byte) string {
	if bytes.Contains(text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// lineIndent is the white space at the start of the line that holds offset.
func lineIndent(text []byte, offset int) string {
	line := text[bytes.LastIndexByte(text[:offset], '\n')+1:]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// indentUnit is how the first indented line is indented; two spaces where none is.
func indentUnit(text []byte) string {
	for line := range bytes.Lines(text) {
		if rest := bytes.TrimLeft(line, " \t"); len(rest) < len(line) && len(bytes.TrimSpace(rest)) > 0 {
			return string(line[:len(line)-len(rest)])
		}
	}
	return "  "
}
