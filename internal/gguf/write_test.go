package gguf

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	draft := &Draft{}
	draft.Set("general.architecture", "llama")
	draft.Set("a.bool", true)
	draft.Set("a.uint32", uint32(7))
	draft.Set("a.int32", int32(-7))
	draft.Set("a.uint64", uint64(1)<<40)
	draft.Set("a.float32", float32(0.5))
	draft.Set("a.texts", []string{"one", "", "drei ü"})
	draft.Set("a.bools", []bool{true, false})
	draft.Set("a.int32s", []int32{-1, 2})
	draft.Set("a.uint32s", []uint32{3, 4, 5})
	draft.Set("a.float32s", []float32{1, 2})
	draft.Add("first.weight", []float32{1, 2, 3}, 3)
	draft.AddHollow("hollow.weight", 2, 1<<12, 1<<12) // Q4_0, 9 MiB
	draft.Add("last.weight", []float32{4, 5, 6, 7, 8, 9}, 2, 3)
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := draft.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	h, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := h.Text("general.architecture"); text != "llama" {
		t.Errorf("architecture %q", text)
	}
	for key, want := range map[string]int64{"a.uint32": 7, "a.int32": -7, "a.uint64": 1 << 40} {
		if got, _ := h.Number(key); got != want {
			t.Errorf("%s: %d", key, got)
		}
	}
	if got, _ := h.Real("a.float32"); got != 0.5 {
		t.Errorf("float %v", got)
	}
	if got, _ := h.Count("a.texts"); got != 3 {
		t.Errorf("%d texts", got)
	}
	if got, _ := h.Numbers("a.uint32s"); !slices.Equal(got, []int64{3, 4, 5}) {
		t.Errorf("numbers %v", got)
	}
	if got, _ := h.Numbers("a.bools"); !slices.Equal(got, []int64{1, 0}) {
		t.Errorf("bools %v", got)
	}
	var names []string
	for _, tensor := range h.Tensors {
		names = append(names, tensor.Name)
	}
	if !slices.Equal(names, []string{"first.weight", "hollow.weight", "last.weight"}) || tensorSum(h) != 12+9<<20+24 {
		t.Errorf("tensors %v of %d bytes", names, tensorSum(h))
	}
	// The data is where the header says: the last tensor at the end, after the hole.
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		if got := math.Float32frombits(binary.LittleEndian.Uint32(text[len(text)-32+4*i:])); got != float32(4+i) {
			t.Errorf("number %d of the last tensor is %v", i, got)
		}
	}
}

func TestWrongDraftsLeaveNoFile(t *testing.T) {
	for name, spoil := range map[string]func(*Draft){
		"shape":      func(d *Draft) { d.Add("x", make([]float32, 5), 2, 3) },
		"type":       func(d *Draft) { d.AddHollow("x", 999, 32) },
		"row":        func(d *Draft) { d.AddHollow("x", 2, 33) },
		"value type": func(d *Draft) { d.Set("x", 3) },
	} {
		folder := t.TempDir()
		draft := &Draft{}
		spoil(draft)
		if err := draft.WriteFile(filepath.Join(folder, "m.gguf")); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v", name, err)
		}
		if left, _ := os.ReadDir(folder); len(left) > 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
}

// tensorSum is the bytes of all tensors without padding.
func tensorSum(h *Header) int64 {
	var sum int64
	for _, t := range h.Tensors {
		sum += t.Bytes
	}
	return sum
}
