package request

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"localllm/delegate"
	"localllm/internal/hint"
)

// Field is one field of an action as its struct tags tell it.
type Field struct {
	Name     string
	Flag     string // "" where it can't be given as a flag
	Type     string // string, integer, boolean, strings, objects, command, switch
	Help     string
	Enum     []string
	Min, Max string // "" for no limit
	Default  string // "" for none
	Required bool
	Fields   []Field // of the objects in a list; nil for a batch's tasks, which have the fields of delegate

	index int
}

// Kinds of a field.
const (
	text    = "string"
	integer = "integer"
	boolean = "boolean"
	texts   = "strings" // a list of strings
	objects = "objects" // a list of objects
	command = "command" // a string for sh -c, or an argv array
	llm     = "switch"  // true or a string
)

// Action describes one action for help texts and generated pages.
type Action struct {
	Name    string
	Summary string
	Fields  []Field
}

// Describe tells what an action takes; the zero Action for an unknown one.
func Describe(name string) Action {
	a := find(name)
	if a == nil {
		return Action{}
	}
	return Action{a.name, a.summary, fieldsOf(reflect.TypeOf(a.empty()).Elem())}
}

func fieldsOf(t reflect.Type) []Field {
	fields := make([]Field, 0, t.NumField())
	for i := range t.NumField() {
		s := t.Field(i)
		name, _, _ := strings.Cut(s.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		f := Field{Name: name, Flag: strings.ReplaceAll(name, "_", "-"), Type: kindOf(s.Type), Help: s.Tag.Get("help"),
			Min: s.Tag.Get("min"), Max: s.Tag.Get("max"), Default: s.Tag.Get("default"), Required: s.Tag.Get("required") == "true", index: i}
		if e := s.Tag.Get("enum"); e != "" {
			f.Enum = strings.Split(e, ",")
		}
		if s.Tag.Get("flag") == "-" {
			f.Flag = ""
		}
		if f.Type == objects && s.Type.Elem() != reflect.TypeFor[delegate.Task]() {
			f.Fields = fieldsOf(s.Type.Elem())
		}
		fields = append(fields, f)
	}
	return fields
}

func kindOf(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[json.RawMessage]():
		return command
	case reflect.TypeFor[LLM]():
		return llm
	case reflect.TypeFor[*bool]():
		return boolean
	}
	switch t.Kind() {
	case reflect.String:
		return text
	case reflect.Int:
		return integer
	case reflect.Bool:
		return boolean
	case reflect.Slice:
		if t.Elem().Kind() == reflect.String {
			return texts
		}
		if t.Elem().Kind() == reflect.Struct {
			return objects
		}
	}
	panic("a request can't have a field of type " + t.String())
}

// Takes says in words what a field takes.
func (f Field) Takes() string {
	switch {
	case f.Enum != nil:
		return "one of " + list(f.Enum)
	case f.Type == integer && f.Max != "":
		return "a whole number from " + f.Min + " to " + f.Max
	case f.Name == "output_files":
		return `a list of {"path", "description"?}`
	}
	return map[string]string{text: "a string", integer: "a whole number", boolean: "true or false", texts: "a list of strings",
		objects: "a list of objects", command: "a string for sh -c, or a list of strings", llm: `true, "true:persist", "MODEL" or "MODEL:persist"`}[f.Type]
}

// fill reads raw into the struct that in points to. Names are matched exactly, and null counts as absent.
func fill(action string, in any, raw json.RawMessage) error {
	return fillStruct(action, "", reflect.ValueOf(in).Elem(), raw)
}

func fillStruct(action, path string, v reflect.Value, raw json.RawMessage) error {
	fields := fieldsOf(v.Type())
	var values map[string]json.RawMessage
	if err := json.Unmarshal(raw, &values); err != nil {
		return &Error{action, strings.TrimSuffix(path, "."), strings.TrimSuffix(path, ".") + " takes an object, not " + short(raw)}
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		value := values[name]
		i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == name })
		switch {
		case i < 0 && name == "action" && path == "":
			var given string
			if json.Unmarshal(value, &given) != nil || given != action {
				return &Error{action, name, fmt.Sprintf("action is %s here, not %s", action, short(value))}
			}
		case i < 0:
			return unknown(action, path, name, fields)
		case string(value) != "null":
			if err := assign(action, path+name, fields[i], v.Field(fields[i].index), value); err != nil {
				return err
			}
		}
	}
	return nil
}

// assign sets one field from its JSON value.
func assign(action, path string, f Field, v reflect.Value, raw json.RawMessage) error {
	wrong := &Error{action, path, fmt.Sprintf("%s takes %s, not %s", path, f.Takes(), short(raw))}
	switch f.Type {
	case objects:
		return assignObjects(action, path, v, raw, wrong)
	case command:
		if !validCommand(raw) {
			return wrong
		}
		v.SetBytes(slices.Clone(raw))
		return nil
	case integer:
		// Some callers write every number with a fraction: 3.0 is 3.
		n, err := strconv.ParseFloat(string(raw), 64)
		if err != nil || n != float64(int(n)) || outOfRange(f, int(n)) {
			return wrong
		}
		v.SetInt(int64(n))
		return nil
	}
	target := reflect.New(v.Type())
	if json.Unmarshal(raw, target.Interface()) != nil {
		return wrong
	}
	if f.Enum != nil && !slices.Contains(f.Enum, target.Elem().String()) {
		if near := nearest(target.Elem().String(), f.Enum); near != "" {
			return hint.Add(wrong, fmt.Sprintf("did you mean %q?", near))
		}
		return wrong
	}
	if f.Type == texts && nullInside(raw) {
		return wrong
	}
	v.Set(target.Elem())
	return nil
}

func assignObjects(action, path string, v reflect.Value, raw json.RawMessage, wrong error) error {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		return wrong
	}
	made := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, item := range items {
		at := fmt.Sprintf("%s[%d]", path, i)
		var plain string
		// An output without a description may be just its path.
		if out, ok := made.Index(i).Addr().Interface().(*delegate.OutputFile); ok && json.Unmarshal(item, &plain) == nil && string(item) != "null" {
			out.Path = plain
			continue
		}
		if string(item) == "null" {
			return &Error{action, at, at + " takes an object, not null"}
		}
		if err := fillStruct(action, at+".", made.Index(i), item); err != nil {
			return err
		}
	}
	v.Set(made)
	return nil
}

func validCommand(raw json.RawMessage) bool {
	var line string
	if json.Unmarshal(raw, &line) == nil {
		return strings.TrimSpace(line) != ""
	}
	var argv []string
	return json.Unmarshal(raw, &argv) == nil && len(argv) > 0 && argv[0] != "" && !nullInside(raw)
}

// nullInside reports a null in a list of strings, which encoding/json takes for "".
func nullInside(raw json.RawMessage) bool {
	var items []*string
	return json.Unmarshal(raw, &items) == nil && slices.Contains(items, nil)
}

func outOfRange(f Field, n int) bool {
	low, err := strconv.Atoi(f.Min)
	if err == nil && n < low {
		return true
	}
	high, err := strconv.Atoi(f.Max)
	return err == nil && n > high
}

// required finds the first required field that is empty, in lists of objects too.
func required(action, path string, in any) error {
	v := reflect.Indirect(reflect.ValueOf(in))
	for _, f := range fieldsOf(v.Type()) {
		value := v.Field(f.index)
		if f.Required && (value.IsZero() || value.Kind() == reflect.String && strings.TrimSpace(value.String()) == "") {
			return &Error{action, path + f.Name, fmt.Sprintf("%s%s is missing: it takes %s (%s)", path, f.Name, f.Takes(), f.Help)}
		}
		if f.Fields == nil {
			continue
		}
		for i := range value.Len() {
			if err := required(action, fmt.Sprintf("%s%s[%d].", path, f.Name, i), value.Index(i).Addr().Interface()); err != nil {
				return err
			}
		}
	}
	return nil
}

func unknown(action, path, name string, fields []Field) error {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	where := action
	if path != "" {
		where = strings.TrimSuffix(path, ".")
	}
	err := &Error{action, path + name, fmt.Sprintf("unknown field %q: %s takes no such field", path+name, where)}
	if near := nearest(name, names); near != "" {
		f := fields[slices.Index(names, near)]
		return hint.Add(err, fmt.Sprintf("did you mean %q? it takes %s", near, f.Takes()))
	}
	if path == "" {
		var owners []string
		for _, a := range actions {
			for _, f := range fieldsOf(reflect.TypeOf(a.empty()).Elem()) {
				if f.Name == name {
					owners = append(owners, a.name)
				}
			}
		}
		if owners != nil {
			return hint.Add(err, name+" is a field of "+list(owners), where+" takes "+list(names))
		}
	}
	return hint.Add(err, where+" takes "+list(names))
}

// object checks that raw is one JSON object and nothing after it.
func object(raw json.RawMessage) error {
	trimmed := bytes.TrimSpace(raw)
	if !json.Valid(trimmed) {
		var v any
		return &Error{Reason: fmt.Sprintf("the input is not valid JSON: %v", json.Unmarshal(trimmed, &v))}
	}
	if trimmed[0] != '{' {
		return &Error{Reason: "the input takes a JSON object, not " + short(trimmed)}
	}
	return nil
}

// short is a value as an error shows it.
func short(raw json.RawMessage) string {
	s := []rune(strings.Join(strings.Fields(string(raw)), " "))
	if len(s) > 60 {
		return string(s[:57]) + "…"
	}
	return string(s)
}

// nearest is the name within two typing errors of a word, or one for short words; "" if there is none.
func nearest(word string, names []string) string {
	best, found := 3, ""
	if len(word) > 200 {
		return ""
	}
	word = strings.ReplaceAll(strings.ToLower(word), "-", "_")
	for _, name := range names {
		limit := 2
		if len(name) < 5 {
			limit = 1
		}
		if d := distance(word, name); d <= limit && d < best {
			best, found = d, name
		}
	}
	if found != "" {
		return found
	}
	for _, name := range names {
		if len(word) > 3 && (strings.HasPrefix(name, word+"_") || strings.HasPrefix(word, name+"_") || strings.ReplaceAll(name, "_", "") == word) {
			return name
		}
	}
	return ""
}

// distance counts insertions, deletions, substitutions and swaps of neighbours.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
