package gguf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// raw puts together a file byte by byte, right or wrong.
type raw struct{ bytes.Buffer }

func (r *raw) put(values ...any) *raw {
	for _, v := range values {
		if s, ok := v.(string); ok {
			r.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(s))))
			r.WriteString(s)
			continue
		}
		if err := binary.Write(r, binary.LittleEndian, v); err != nil {
			panic(err)
		}
	}
	return r
}

// file begins one with its version and counts.
func file(version uint32, tensors, keys uint64) *raw {
	r := &raw{}
	r.WriteString("GGUF")
	return r.put(version, tensors, keys)
}

// good is a whole file with a key of every kind, two tensors and their data.
func good(version uint32) []byte {
	r := file(version, 2, 12)
	r.put("general.architecture", uint32(kindString), "llama")
	r.put("llama.block_count", uint32(kindUint32), uint32(2))
	r.put("a.u8", uint32(kindUint8), uint8(200)).put("a.i8", uint32(kindInt8), int8(-3))
	r.put("a.u16", uint32(kindUint16), uint16(60000)).put("a.i16", uint32(kindInt16), int16(-300))
	r.put("a.i64", uint32(kindInt64), int64(-1)<<40).put("a.bool", uint32(kindBool), uint8(1))
	r.put("a.f32", uint32(kindFloat32), float32(0.5)).put("a.f64", uint32(kindFloat64), 0.25)
	r.put("heads", uint32(kindArray), uint32(kindInt32), uint64(3), int32(1), int32(-2), int32(3))
	r.put("tokenizer.ggml.tokens", uint32(kindArray), uint32(kindString), uint64(2), "x", "yy")
	r.put("a.weight", uint32(2), uint64(256), uint64(2), uint32(12), uint64(0))
	r.put("b.weight", uint32(1), uint64(4), uint32(0), uint64(288))
	for r.Len()%32 != 0 {
		r.WriteByte(0)
	}
	r.Write(make([]byte, 304))
	return r.Bytes()
}

func TestReadsBothVersions(t *testing.T) {
	for _, version := range []uint32{2, 3} {
		data := good(version)
		h, err := Read(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		if h.Version != version || tensorSum(h) != 304 || h.Missing != 0 || len(h.Tensors) != 2 || h.DataBytes != 320 {
			t.Errorf("version %d: %+v", version, h)
		}
		for key, want := range map[string]int64{"llama.block_count": 2, "a.u8": 200, "a.i8": -3, "a.u16": 60000, "a.i16": -300, "a.i64": -1 << 40, "a.bool": 1} {
			if n, ok := h.Number(key); !ok || n != want {
				t.Errorf("%s is %d, want %d", key, n, want)
			}
		}
		if f, _ := h.Real("a.f32"); f != 0.5 {
			t.Errorf("a.f32 is %v", f)
		}
		if f, _ := h.Real("a.f64"); f != 0.25 {
			t.Errorf("a.f64 is %v", f)
		}
		if list, _ := h.Numbers("heads"); len(list) != 3 || list[1] != -2 {
			t.Errorf("heads are %v", list)
		}
		if n, _ := h.Count("tokenizer.ggml.tokens"); n != 2 {
			t.Errorf("%d tokens", n)
		}
		if s, _ := h.Text("general.architecture"); s != "llama" {
			t.Errorf("architecture %q", s)
		}
	}
}

// A download that was cut off is told apart from one whose header is not even whole.
func TestTruncatedFiles(t *testing.T) {
	data := good(3)
	cut := data[:len(data)-100]
	h, err := Read(bytes.NewReader(cut), int64(len(cut)))
	if err != nil || h.Missing != 100 {
		t.Errorf("missing data: %+v, %v", h, err)
	}
	header := len(data) - 320 - 31 // before the padding
	for n := range header {
		_, err := Read(bytes.NewReader(data[:n]), int64(n))
		if err == nil {
			t.Fatalf("a header of %d of %d bytes is accepted", n, header)
		}
		if n > 4 && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
}

func TestHostileFiles(t *testing.T) {
	key := func(kind uint32) *raw { return file(3, 0, 1).put("k", kind) }
	tests := []struct {
		name string
		data *raw
		want string
	}{
		{"empty", &raw{}, "not a GGUF file"},
		{"another kind of file", (&raw{}).put(uint64(0x04034b50)), "not a GGUF file"},
		{"version 1", file(1, 0, 0), "version 1"},
		{"a version to come", file(4, 0, 0), "version 4"},
		{"big-endian", file(3<<24, 0, 0), "big-endian"},
		{"too many keys", file(3, 0, 1<<60), "more than any model has"},
		{"too many tensors", file(3, 1<<60, 0), "more than any model has"},
		{"a key of 2^63 bytes", file(3, 0, 1).put(uint64(1 << 63)), "a name of"},
		{"an unknown kind of value", key(99).put(uint64(0)), "value type 99"},
		{"a text longer than the file", key(kindString).put(uint64(1 << 40)), "ends inside its header"},
		{"more texts than the file has room for", key(kindArray).put(uint32(kindString), uint64(1<<60)), "ends inside its header"},
		{"more numbers than the file has room for", key(kindArray).put(uint32(kindUint64), uint64(1<<50)), "ends inside its header"},
		{"a count beyond all numbers", key(kindArray).put(uint32(kindUint64), uint64(1<<63)), "an array of"},
		{"a count that overflows in bytes", key(kindArray).put(uint32(kindUint64), uint64(1<<62)), "an array of"},
		{"an array of an unknown kind", key(kindArray).put(uint32(77), uint64(1)), "value type 77"},
		{"arrays nested without end", key(kindArray).put(uint32(kindArray), uint64(1), uint32(kindArray), uint64(1), uint32(kindArray), uint64(1), uint32(kindArray), uint64(1)), "nested"},
		{"alignment zero", file(3, 0, 1).put("general.alignment", uint32(kindUint32), uint32(0)), "alignment 0"},
		{"an odd alignment", file(3, 0, 1).put("general.alignment", uint32(kindUint32), uint32(33)), "alignment 33"},
		{"a tensor of five dimensions", file(3, 1, 0).put("t", uint32(5)), "5 dimensions"},
		{"a tensor larger than any file", file(3, 1, 0).put("t", uint32(2), uint64(1<<40), uint64(1<<40), uint32(0), uint64(0)), "not possible"},
		{"a tensor with a side beyond all numbers", file(3, 1, 0).put("t", uint32(1), uint64(1<<63), uint32(0), uint64(0)), "a side of"},
		{"rows that are no whole blocks", file(3, 1, 0).put("t", uint32(1), uint64(100), uint32(12), uint64(0)), "not possible"},
		{"data beyond any file", file(3, 1, 0).put("t", uint32(1), uint64(4), uint32(0), uint64(1<<63-1)), "beyond any file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Read(bytes.NewReader(tt.data.Bytes()), int64(tt.data.Len()))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestLongTextsAndListsAreCountedAndNotKept(t *testing.T) {
	r := file(3, 0, 3)
	r.put("long", uint32(kindString), strings.Repeat("x", maxTextKept+1))
	r.put("many", uint32(kindArray), uint32(kindUint8), uint64(maxListKept+1), make([]byte, maxListKept+1))
	r.put("after", uint32(kindUint8), uint8(7))
	h, err := Read(bytes.NewReader(r.Bytes()), int64(r.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := h.Text("long"); ok {
		t.Error("the long text was kept")
	}
	if _, ok := h.Numbers("many"); ok {
		t.Error("the long list was kept")
	}
	if n, _ := h.Count("many"); n != maxListKept+1 {
		t.Errorf("counted %d", n)
	}
	if n, _ := h.Number("after"); n != 7 {
		t.Errorf("what follows is %d", n)
	}
}

// Types are added now and then; an offset says as much as a size.
func TestATypeThatIsNewerThanTheTable(t *testing.T) {
	r := file(3, 3, 0)
	r.put("b", uint32(1), uint64(64), uint32(200), uint64(128))
	r.put("a", uint32(1), uint64(32), uint32(0), uint64(0))
	r.put("c", uint32(1), uint64(64), uint32(201), uint64(256))
	for r.Len()%32 != 0 {
		r.WriteByte(0)
	}
	r.Write(make([]byte, 300))
	h, err := Read(bytes.NewReader(r.Bytes()), int64(r.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if h.Tensors[0].Bytes != 128 || h.Tensors[1].Bytes != 128 || h.Tensors[2].Bytes != 44 || h.Missing != 0 {
		t.Errorf("%+v", h.Tensors)
	}
}

func write(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// shard is one of count files with a tensor of 64 bytes.
func shard(number, count int) []byte {
	keys := uint64(1)
	if number == 1 {
		keys = 2
	}
	r := file(3, 1, keys)
	r.put("split.count", uint32(kindUint16), uint16(count))
	if number == 1 {
		r.put("general.architecture", uint32(kindString), "llama")
	}
	r.put(fmt.Sprintf("t%d", number), uint32(1), uint64(16), uint32(0), uint64(0))
	for r.Len()%32 != 0 {
		r.WriteByte(0)
	}
	r.Write(make([]byte, 64))
	return r.Bytes()
}

func TestShardsAreOneModel(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for i := 1; i <= 3; i++ {
		paths = append(paths, write(t, dir, fmt.Sprintf("m-%05d-of-00003.gguf", i), shard(i, 3)))
	}
	for _, path := range paths {
		h, err := ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		arch, _ := h.Text("general.architecture")
		if tensorSum(h) != 192 || len(h.Shards) != 3 || h.Shards[0] != paths[0] || arch != "llama" || h.Missing != 0 {
			t.Errorf("from %s: %+v", path, h)
		}
	}
	if err := os.Remove(paths[1]); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(paths[0]); err == nil || !strings.Contains(err.Error(), "shard 2 of 3") {
		t.Errorf("a missing shard: %v", err)
	}
	odd := write(t, dir, "renamed.gguf", shard(1, 3))
	if _, err := ReadFile(odd); err == nil || !strings.Contains(err.Error(), "its name does not say which") {
		t.Errorf("a renamed shard: %v", err)
	}
	many := write(t, dir, "many-00001-of-60000.gguf", shard(1, 60000))
	if _, err := ReadFile(many); err == nil || !strings.Contains(err.Error(), "60000 files") {
		t.Errorf("a hostile count: %v", err)
	}
}

// Offsets beyond 32 bits are the ordinary case: most models are larger than 4 GB.
func TestAFileOver4GB(t *testing.T) {
	r := file(3, 2, 0)
	const big = 6 << 30
	r.put("big", uint32(1), uint64(big), uint32(24), uint64(0))
	r.put("small", uint32(1), uint64(32), uint32(24), uint64(big))
	path := write(t, t.TempDir(), "big.gguf", r.Bytes())
	if err := os.Truncate(path, int64(r.Len()+31)/32*32+big+32); err != nil {
		t.Fatal(err)
	}
	h, err := ReadFile(path)
	if err != nil || tensorSum(h) != big+32 || h.Missing != 0 {
		t.Errorf("%+v, %v", h, err)
	}
	if err := os.Truncate(path, big); err != nil {
		t.Fatal(err)
	}
	if h, err := ReadFile(path); err != nil || h.Missing <= 32 {
		t.Errorf("cut off: %+v, %v", h, err)
	}
}

func TestWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadFile(dir); !errors.Is(err, ErrNotGGUF) {
		t.Errorf("a folder: %v", err)
	}
	if _, err := ReadFile(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// A vocabulary of 250,000 tokens is the longest part of real headers.
func TestALargeVocabularyIsReadInTime(t *testing.T) {
	const tokens = 250_000
	r := file(3, 0, 1).put("tokenizer.ggml.tokens", uint32(kindArray), uint32(kindString), uint64(tokens))
	for i := range tokens {
		r.put(fmt.Sprintf("token %d", i))
	}
	path := write(t, t.TempDir(), "v.gguf", r.Bytes())
	best := time.Hour
	for range 5 {
		begin := time.Now()
		if _, err := ReadFile(path); err != nil {
			t.Fatal(err)
		}
		best = min(best, time.Since(begin))
	}
	t.Logf("%d tokens in %v", tokens, best)
	if best > 5*time.Second { // 20 ms are meant, on a machine that does nothing else
		t.Errorf("took %v", best)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(good(3))
	f.Add(good(2))
	f.Add(shard(1, 3))
	f.Add(file(3, 1, 0).put("t", uint32(1), uint64(4), uint32(0), uint64(1<<63-1)).Bytes())
	f.Add(file(3, 0, 1).put("k", uint32(kindArray), uint32(kindArray), uint64(1<<40), uint32(kindArray), uint64(1)).Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		// The size is the file's claim too: a sparse file is as large as it likes.
		for _, size := range []int64{int64(len(data)), 1 << 50} {
			h, err := Read(bytes.NewReader(data), size)
			if err != nil {
				continue
			}
			if tensorSum(h) < 0 || h.Missing < 0 || h.DataBytes < 0 {
				t.Errorf("negative sizes: %+v", h)
			}
		}
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
			t.Errorf("%d bytes allocated for a file of %d", used, len(data))
		}
	})
}
