package request

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the snapshots anew")

func TestSchemaSnapshot(t *testing.T) {
	var indented bytes.Buffer
	if err := json.Indent(&indented, Schema(), "", "  "); err != nil {
		t.Fatal(err)
	}
	indented.WriteByte('\n')
	const path = "testdata/schema.json"
	if *update {
		if err := os.WriteFile(path, indented.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(indented.Bytes(), want) {
		t.Errorf("the tool's schema changed; if that is meant: go test ./internal/request -run Snapshot -update\n%s", indented.Bytes())
	}
}

func TestSchemaHasEveryFieldAndSharedNamesAgree(t *testing.T) {
	var schema struct {
		Properties map[string]struct {
			Type        string
			AnyOf       []any
			Description string
			Enum        []string
		}
		Required []string
	}
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	types, enums := map[string]string{}, map[string][]string{}
	for _, name := range Actions() {
		d := Describe(name)
		if d.Summary == "" || Describe(name).Name != name {
			t.Errorf("%s has no description", name)
		}
		for _, f := range d.Fields {
			if f.Help == "" {
				t.Errorf("%s.%s has no help", name, f.Name)
			}
			p, ok := schema.Properties[f.Name]
			if !ok || (p.Type == "") == (p.AnyOf == nil) {
				t.Errorf("the schema lacks %s.%s", name, f.Name)
			}
			if other, ok := types[f.Name]; ok && other != f.Type {
				t.Errorf("%s.%s is %s here and %s elsewhere: one schema can't say both", name, f.Name, f.Type, other)
			}
			if other, ok := enums[f.Name]; ok && !slices.Equal(other, f.Enum) {
				t.Errorf("%s.%s takes %v here and %v elsewhere", name, f.Name, f.Enum, other)
			}
			types[f.Name], enums[f.Name] = f.Type, f.Enum
		}
	}
	if len(schema.Properties) != len(types)+1 || strings.Join(schema.Required, "") != "action" {
		t.Errorf("%d properties for %d fields and the action; required %v", len(schema.Properties), len(types), schema.Required)
	}
}
