package request

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	"github.com/spf13/pflag"
)

// Flags gives fs one flag for each field of the struct that dst points to: the field's name with dashes. Lists repeat.
// What a flag is given is checked at once; Check afterwards finds what is missing.
func Flags(fs *pflag.FlagSet, dst any) {
	v := reflect.ValueOf(dst).Elem()
	action := nameOf(dst)
	for _, f := range fieldsOf(v.Type()) {
		if f.Flag == "" {
			continue
		}
		value := &flagValue{action: action, field: f, target: v.Field(f.index)}
		flag := fs.VarPF(value, f.Flag, "", f.usage())
		flag.DefValue = f.Default // for the help text: the field itself stays empty
		if f.Type == boolean {
			flag.NoOptDefVal = "true"
		}
	}
}

func (f Field) usage() string {
	help := f.Help
	if f.Enum != nil {
		help += " (" + strings.Join(f.Enum, "|") + ")"
	}
	if f.Type == command {
		help, _, _ = strings.Cut(help, ": a string")
		help += " (for sh -c)"
	}
	if f.Type == texts || f.Type == objects {
		help += " (repeatable)"
	}
	return help
}

type flagValue struct {
	action string
	field  Field
	target reflect.Value
}

// Set turns what the flag was given into the field's JSON and goes the way that the tool's values go.
func (v *flagValue) Set(s string) error {
	var value any = s
	switch v.field.Type {
	case integer, boolean:
		if !json.Valid([]byte(s)) {
			return errors.New(v.field.Name + " takes " + v.field.Takes())
		}
		value = json.RawMessage(s)
	case texts:
		v.target.Set(reflect.Append(v.target, reflect.ValueOf(s)))
		return nil
	case objects:
		return v.output(s)
	}
	raw, err := plain(value)
	if err != nil {
		return err
	}
	return assign(v.action, v.field.Name, v.field, v.target, raw)
}

// output adds PATH[=description].
func (v *flagValue) output(s string) error {
	path, description, _ := strings.Cut(s, "=")
	if path == "" {
		return errors.New(v.field.Name + " takes PATH[=description]")
	}
	item := reflect.New(v.target.Type().Elem()).Elem()
	item.FieldByName("Path").SetString(path)
	item.FieldByName("Description").SetString(description)
	v.target.Set(reflect.Append(v.target, item))
	return nil
}

// String is empty while the field is: the help text shows the default from the tag.
func (v *flagValue) String() string {
	if v == nil || !v.target.IsValid() || v.target.IsZero() {
		return ""
	}
	raw, err := json.Marshal(v.target.Interface())
	if err != nil {
		return ""
	}
	return strings.Trim(string(raw), `"`)
}

// Type is what the help text shows in place of the value.
func (v *flagValue) Type() string {
	switch v.field.Type {
	case boolean:
		return "bool"
	case integer:
		return "int"
	case objects:
		return "PATH[=description]"
	case command:
		return "command"
	case llm:
		return "true|MODEL[:persist]"
	}
	return "string"
}
