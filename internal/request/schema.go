package request

import (
	"bytes"
	"encoding/json"
	"strings"
)

// property is one property of the tool's schema, in the order in which it is printed.
type property struct {
	Type        string          `json:"type,omitempty"`
	AnyOf       []property      `json:"anyOf,omitempty"`
	Enum        []string        `json:"enum,omitempty"`
	Description string          `json:"description,omitempty"`
	Items       *property       `json:"items,omitempty"`
	Properties  *ordered        `json:"properties,omitempty"`
	Required    []string        `json:"required,omitempty"`
	Minimum     json.RawMessage `json:"minimum,omitempty"`
	Maximum     json.RawMessage `json:"maximum,omitempty"`
}

// ordered keeps properties in the order in which they were added, so that the schema is the same text every time.
type ordered struct {
	names []string
	props []property
}

func (o *ordered) add(name string, p property) {
	o.names = append(o.names, name)
	o.props = append(o.props, p)
}

func (o *ordered) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, name := range o.names {
		if i > 0 {
			b.WriteByte(',')
		}
		raw, err := plain(o.props[i])
		if err != nil {
			return nil, err
		}
		b.WriteString(`"` + name + `":`)
		b.Write(raw)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Schema is the input schema of the one tool: the action, and the fields of all actions. Where actions share a name the
// field means the same, and the most-used action's words describe it.
func Schema() json.RawMessage {
	props := &ordered{}
	props.add("action", property{Type: "string", Enum: Actions()})
	seen := map[string]bool{}
	for _, name := range []string{"delegate", "analyze", "enable", "capability", "disable", "status", "stats"} {
		for _, f := range Describe(name).Fields {
			if !seen[f.Name] {
				seen[f.Name] = true
				props.add(f.Name, f.property())
			}
		}
	}
	raw, err := plain(property{Type: "object", Properties: props, Required: []string{"action"}})
	if err != nil {
		panic(err)
	}
	return raw
}

func (f Field) property() property {
	p := property{Description: f.Help, Enum: f.Enum}
	if f.Default != "" {
		p.Description += "; default " + f.Default
	}
	switch f.Type {
	case texts:
		p.Type, p.Items = "array", &property{Type: "string"}
	case command:
		// Not a list of types: some clients map schemas onto a dialect that has none.
		p.AnyOf = []property{{Type: "string"}, {Type: "array", Items: &property{Type: "string"}}}
	case llm:
		p.AnyOf = []property{{Type: "boolean"}, {Type: "string"}}
	case objects:
		item := &property{Type: "object"}
		if f.Fields != nil {
			item.Properties = &ordered{}
			for _, sub := range f.Fields {
				item.Properties.add(sub.Name, property{Type: sub.Type})
				if sub.Required {
					item.Required = append(item.Required, sub.Name)
				}
			}
		}
		p.Type, p.Items = "array", item
	default:
		p.Type = f.Type
	}
	if f.Name == "max_turns" {
		// The one limit that is lower than a caller would guess; the others are only there against nonsense.
		p.Maximum = json.RawMessage(f.Max)
	}
	return p
}

// Takes lists an action's fields by name, as the tool's description shows them; required ones have a star.
func (a Action) Takes() string {
	names := make([]string, len(a.Fields))
	for i, f := range a.Fields {
		names[i] = f.Name
		if f.Required {
			names[i] += "*"
		}
	}
	return strings.Join(names, ", ")
}

// plain is JSON without the escapes that protect HTML, which cost tokens.
func plain(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}
