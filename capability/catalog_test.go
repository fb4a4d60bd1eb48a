package capability

import (
	"strings"
	"testing"
	"time"
)

func TestEveryRowOfTheTableHasItsDateAndSource(t *testing.T) {
	c := DefaultCatalog()
	if len(c.Models) < 20 || len(c.Classes) < 10 {
		t.Fatalf("%d models, %d classes", len(c.Models), len(c.Classes))
	}
	for _, r := range c.Models {
		if _, err := time.Parse(time.DateOnly, r.Date); err != nil {
			t.Errorf("%s: %v", r.Ref, err)
		}
		if r.License == "" || r.ContextLimit == 0 || r.Arch == "" {
			t.Errorf("%s: a figure is missing", r.Ref)
		}
		if r.Confirmed && (r.Bytes == 0 || r.Layers == 0 || r.Embedding == 0 || r.Vocabulary == 0) {
			t.Errorf("%s is marked as confirmed and lacks figures", r.Ref)
		}
		switch r.PrefixCache {
		case CacheReliable, CacheCheckpoints, CacheUnknown:
		default:
			t.Errorf("%s: prefix cache %q", r.Ref, r.PrefixCache)
		}
		if got := r.Shape().PrefixCache(); r.Layers > 0 && got != r.PrefixCache {
			t.Errorf("%s: the row says its prefix cache is %s, its layers say %s", r.Ref, r.PrefixCache, got)
		}
	}
}

func TestEveryPickOfATierIsInTheTable(t *testing.T) {
	c := DefaultCatalog()
	last := -1.0
	for _, k := range c.Classes {
		if k.FromGB <= last {
			t.Errorf("class %s is out of order", k.Name)
		}
		last = k.FromGB
		if len(k.Current) == 0 {
			t.Errorf("class %s has no pick", k.Name)
		}
		for _, ref := range append(k.Current, k.Documented) {
			if _, ok := c.Find(ref); !ok && ref != "" {
				t.Errorf("class %s names %s, which is not in the table", k.Name, ref)
			}
		}
	}
	want := map[string]string{"8-12 GB": "deepseek-coder:6.7b", "16-24 GB": "deepseek-coder-v2:16b", "24-32 GB": "deepseek-coder:33b", "32-48 GB": "deepseek-r1:32b"}
	for _, k := range c.Classes {
		if k.Documented != want[k.Name] {
			t.Errorf("documented pick of %s is %q", k.Name, k.Documented)
		}
	}
}

// Kibibytes of cache a token, as published for these models.
func TestCachePerTokenOfTheTable(t *testing.T) {
	c := DefaultCatalog()
	for ref, want := range map[string]float64{
		"gpt-oss:20b": 24, "qwen3-coder:30b": 96, "qwen3.8:27b": 64, "qwen3.6:35b-a3b": 20, "qwen3-coder-next": 24,
		"devstral-small-2:24b": 160, "glm-4.7-flash": 52.875, "qwen2.5-coder:7b": 56, "qwen2.5-coder:14b": 192,
		"qwen2.5-coder:32b": 256, "deepseek-coder-v2:16b": 270, "gpt-oss:120b": 36, "deepseek-coder:6.7b": 512,
	} {
		row, ok := c.Find(ref)
		if !ok {
			t.Errorf("%s is not in the table", ref)
			continue
		}
		s := row.Shape()
		long, short := s.Estimate(Setting{Context: 65536}), s.Estimate(Setting{Context: 32768})
		if got := float64(long.KVBytes-short.KVBytes) / 32768 / 1024; got != want {
			t.Errorf("%s: %.2f KiB a token, want %.2f", ref, got, want)
		}
	}
}

func TestTheUsersRowsReplaceAndAdd(t *testing.T) {
	own, err := ParseCatalog(`
[[model]]
ref = "qwen3-coder:30b"
bytes = 7
date = "2026-01-01"
source = "mine"
[[model]]
ref = "my-model"
bytes = 9
date = "2026-01-01"
source = "mine"
[[class]]
name = "24-32 GB"
from_gb = 24
current = ["my-model"]
[[class]]
name = "odd"
from_gb = 20
current = ["my-model"]
`)
	if err != nil {
		t.Fatal(err)
	}
	base := DefaultCatalog()
	c := base.Override(own)
	if row, _ := c.Find("qwen3-coder:30b"); row == nil || row.Bytes != 7 {
		t.Errorf("not replaced: %+v", row)
	}
	if row, _ := c.Find("my-model:latest"); row == nil || row.Bytes != 9 {
		t.Errorf("not added: %+v", row)
	}
	if len(c.Classes) != len(base.Classes)+1 {
		t.Errorf("%d classes", len(c.Classes))
	}
	for i := 1; i < len(c.Classes); i++ {
		if c.Classes[i].FromGB < c.Classes[i-1].FromGB {
			t.Errorf("class %s is out of order", c.Classes[i].Name)
		}
	}
	if row, _ := DefaultCatalog().Find("qwen3-coder:30b"); row.Bytes == 7 {
		t.Error("the table itself was changed")
	}
}

func TestABrokenTableIsRefusedWithTheReason(t *testing.T) {
	for text, want := range map[string]string{
		"[[model]]\nref = \"a\"\ndate = \"x\"":                                    "no date or no source",
		"[[model]]\nref = \"\"\ndate = \"x\"\nsource = \"y\"":                     "model reference",
		"[[model]]\nref = \"a\"\ndate = \"x\"\nsource = \"y\"\nlayers = 99999999": "more than",
		"[[model]]\nref = \"a\"\ndate = \"x\"\nsource = \"y\"\nkv_heads = -1":     "negative",
		"[[model]]\nreff = \"a\"":                                                 "unknown field",
		"[[model":                                                                 "reading the model table",
	} {
		if _, err := ParseCatalog(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gave %v, want %q in it", text, err, want)
		}
	}
}
