package outcomes

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"localllm/internal/atomicfile"
	"localllm/internal/logfile"
	"localllm/scoring"
	"localllm/stats"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func same(s string) string { return s }

var when = time.Date(2026, 1, 21, 15, 30, 0, 0, time.UTC)

func record(status, model string) stats.Record {
	exit := 0
	return stats.Record{Timestamp: when, Task: "x", TaskType: "generate", Decision: "delegate", Status: status, Model: model,
		Attempts: 2, TokensPrompt: 3000, Files: []string{"a.go"}, VerifyExit: &exit, TimeSeconds: 5}
}

var crud = scoring.Task{Text: "Generate Express CRUD routes", Type: "generate", Model: "qwen", Outputs: 1, Prompt: 1500, Verify: true}

func log(t *testing.T, root string, records ...stats.Record) {
	t.Helper()
	for _, r := range records {
		if err := logfile.Open(root, same).Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
}

func times(n int, r stats.Record) []stats.Record {
	out := make([]stats.Record, n)
	for i := range out {
		out[i] = r
	}
	return out
}

func similar(t *testing.T, x *Index, task scoring.Task) scoring.History {
	t.Helper()
	h, err := x.Similar(task)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func sync1(t *testing.T, x *Index, root string) {
	t.Helper()
	if err := x.Sync(t.Context(), root); err != nil {
		t.Fatal(err)
	}
}

func history(similar, alike scoring.Tally) scoring.History {
	return scoring.History{Similar: similar, Alike: alike}
}

func TestOutcomesOfAllProjectsTurnTheAdvice(t *testing.T) {
	x := Open(filepath.Join(t.TempDir(), "state"))
	one, two := t.TempDir(), t.TempDir()
	log(t, one, times(15, record("failed", "qwen"))...)
	sync1(t, x, one)
	log(t, two, times(15, record("rejected", "qwen"))...)
	log(t, two, record("proven", "gemma"), record("cancelled", "qwen"), record("unproven", "qwen"), record("unverified", "qwen"))
	sync1(t, x, two)

	h := similar(t, x, crud)
	if h != history(scoring.Tally{Tried: 30}, scoring.Tally{Tried: 30}) {
		t.Fatalf("%+v", h)
	}
	if a := scoring.Score(crud, h, scoring.Window{Fits: true}); a.Score >= scoring.Under || a.Recommendation != scoring.Keep {
		t.Errorf("%+v", a)
	}
	other := crud
	other.Model = "brand-new"
	if h := similar(t, x, other); h != (scoring.History{}) {
		t.Errorf("a new model starts with %+v", h)
	}
}

func TestSyncTakesEachLineOnce(t *testing.T) {
	x, root := Open(t.TempDir()), t.TempDir()
	for i := range 20 {
		log(t, root, record("proven", "qwen"))
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if err := x.Sync(t.Context(), root); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if h := similar(t, x, crud); h.Similar != (scoring.Tally{Tried: i + 1, Succeeded: i + 1}) {
			t.Fatalf("after %d lines: %+v", i+1, h)
		}
	}
}

func logPath(root string) string { return logfile.Open(root, same).Path() }

func TestWhatIsLostIsMadeAgain(t *testing.T) {
	setup := func(t *testing.T) (*Index, string, string) {
		x, one, two := Open(t.TempDir()), t.TempDir(), t.TempDir()
		log(t, one, times(3, record("proven", "qwen"))...)
		log(t, two, times(2, record("failed", "qwen"))...)
		sync1(t, x, one)
		sync1(t, x, two)
		return x, one, two
	}
	must := func(t *testing.T, err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		damage func(t *testing.T, x *Index, one, two string)
		want   scoring.Tally
	}{
		"the index is removed": {func(t *testing.T, x *Index, _, _ string) { must(t, os.Remove(filepath.Join(x.dir, indexFile))) }, scoring.Tally{Tried: 5, Succeeded: 3}},
		"the index is torn": {func(t *testing.T, x *Index, _, _ string) {
			must(t, os.WriteFile(filepath.Join(x.dir, indexFile), []byte(`{"ver`), 0o600))
		}, scoring.Tally{Tried: 5, Succeeded: 3}},
		"of another version": {func(t *testing.T, x *Index, _, _ string) {
			must(t, os.WriteFile(filepath.Join(x.dir, indexFile), []byte(`{"version":99}`), 0o600))
		}, scoring.Tally{Tried: 5, Succeeded: 3}},
		"a log is removed": {func(t *testing.T, _ *Index, one, _ string) { must(t, os.Remove(logPath(one))) }, scoring.Tally{Tried: 2}},
		"a log is another": {func(t *testing.T, _ *Index, one, _ string) {
			r := record("failed", "qwen")
			r.Task = "of another machine"
			must(t, os.Remove(logPath(one)))
			log(t, one, times(9, r)...)
		}, scoring.Tally{Tried: 11}},
		"a project is removed": {func(t *testing.T, x *Index, _, two string) {
			must(t, os.Remove(filepath.Join(x.dir, indexFile)))
			must(t, os.RemoveAll(two))
		}, scoring.Tally{Tried: 3, Succeeded: 3}},
		"another project's log is a link": {func(t *testing.T, x *Index, _, two string) {
			must(t, os.Remove(filepath.Join(x.dir, indexFile)))
			must(t, os.Remove(logPath(two)))
			must(t, os.Symlink("/etc/passwd", logPath(two)))
		}, scoring.Tally{Tried: 3, Succeeded: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			x, one, two := setup(t)
			c.damage(t, x, one, two)
			sync1(t, x, one)
			if h := similar(t, x, crud); h.Similar != c.want {
				t.Errorf("%+v, want %+v", h.Similar, c.want)
			}
			sync1(t, x, one)
			if h := similar(t, x, crud); h.Similar != c.want {
				t.Errorf("the second time: %+v, want %+v", h.Similar, c.want)
			}
		})
	}
}

func TestHalfALineWaitsForItsEnd(t *testing.T) {
	x, root := Open(t.TempDir()), t.TempDir()
	log(t, root, record("proven", "qwen"))
	whole, err := record("failed", "qwen").Line(same)
	if err != nil {
		t.Fatal(err)
	}
	write := func(b []byte) {
		f, err := os.OpenFile(logPath(root), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(b); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write(whole[:40])
	sync1(t, x, root)
	if h := similar(t, x, crud); h.Similar != (scoring.Tally{Tried: 1, Succeeded: 1}) {
		t.Errorf("with half a line: %+v", h)
	}
	write(whole[40:])
	sync1(t, x, root)
	if h := similar(t, x, crud); h.Similar != (scoring.Tally{Tried: 2, Succeeded: 1}) {
		t.Errorf("with the whole: %+v", h)
	}
}

func TestLinesOfEightFieldsCount(t *testing.T) {
	x, root := Open(t.TempDir()), t.TempDir()
	line := `{"timestamp":"2026-01-21T15:30:00Z","task":"Generate CRUD routes","task_type":"generate","score":0.78,"decision":"delegate","verification_passed":%t,"tokens_generated":847,"time_seconds":42}` + "\n"
	if err := os.MkdirAll(filepath.Dir(logPath(root)), 0o755); err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat(fmt.Sprintf(line, true), 3) + fmt.Sprintf(line, false) + "{broken\n"
	if err := os.WriteFile(logPath(root), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	sync1(t, x, root)
	want := scoring.Tally{Tried: 4, Succeeded: 3}
	if h := similar(t, x, crud); h != history(want, want) {
		t.Errorf("%+v", h)
	}
}

// The same lines, in any order and over any number of projects, say the same.
func TestOrderOfLinesDoesNotMatter(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 2))
	var records []stats.Record
	for range 60 {
		r := record([]string{"proven", "failed", "timed_out", "answered"}[rng.IntN(4)], []string{"qwen", "gemma", ""}[rng.IntN(3)])
		r.TaskType = []string{"generate", "fix"}[rng.IntN(2)]
		r.TokensPrompt = 1 << rng.IntN(16)
		r.Timestamp = when.Add(time.Duration(rng.IntN(1e6)) * time.Second)
		records = append(records, r)
	}
	score := func() scoring.History {
		x, roots := Open(t.TempDir()), []string{t.TempDir(), t.TempDir(), t.TempDir()}
		for i, r := range records {
			log(t, roots[i%3], r)
			if rng.IntN(5) == 0 {
				sync1(t, x, roots[rng.IntN(3)])
			}
		}
		for _, root := range roots {
			sync1(t, x, root)
		}
		return similar(t, x, crud)
	}
	want := score()
	if want.Similar.Tried == 0 || want.Alike == want.Similar {
		t.Fatalf("too little to show: %+v", want)
	}
	for range 4 {
		rng.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
		if got := score(); got != want {
			t.Fatalf("%+v, before %+v", got, want)
		}
	}
}

func TestTheIndexIsBounded(t *testing.T) {
	x := Open(t.TempDir())
	idx := empty()
	for i := range mostKinds + 50 {
		idx.Kinds = append(idx.Kinds, counted{Kind: scoring.Kind{Type: "fix", Model: fmt.Sprint(i)}, Tried: 1, Last: int64(i)})
	}
	if err := x.save(idx); err != nil {
		t.Fatal(err)
	}
	got, err := x.load()
	if err != nil || len(got.Kinds) != mostKinds || got.Kinds[mostKinds-1].Last != 50 {
		t.Errorf("%d kinds, %v", len(got.Kinds), err)
	}
	p := projects{Version: version}
	for i := range mostProjects {
		p.Roots = append(p.Roots, fmt.Sprintf("/p/%d", i))
	}
	if err := atomicfile.WriteJSON(filepath.Join(x.dir, projectsFile), p); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{"/p/3", "/new", "/new"} {
		if _, err := x.remember(root); err != nil {
			t.Fatal(err)
		}
	}
	known, err := x.remember("/new")
	if err != nil || len(known) != mostProjects || known[0] != "/p/1" || known[mostProjects-1] != "/new" || known[mostProjects-2] != "/p/3" {
		t.Errorf("%d projects, the first %s, %v", len(known), known[0], err)
	}
}

func TestErrors(t *testing.T) {
	x, root := Open(t.TempDir()), t.TempDir()
	if h, err := x.Similar(crud); err != nil || h != (scoring.History{}) {
		t.Errorf("an index that never was: %+v %v", h, err)
	}
	if err := os.MkdirAll(logPath(root), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := x.Sync(t.Context(), root); err == nil || !strings.Contains(err.Error(), "a folder") {
		t.Errorf("a log that is a folder: %v", err)
	}
	if err := os.WriteFile(filepath.Join(x.dir, indexFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Similar(crud); err == nil {
		t.Error("a torn index was read")
	}
	file := filepath.Join(root, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Open(file).Sync(t.Context(), t.TempDir()); err == nil {
		t.Error("an index in a file's place")
	}
	if err := Open(t.TempDir()).Sync(t.Context(), filepath.Join(root, "gone")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a project that is not there: %v", err)
	}
}

func TestTheIndexKeepsNoText(t *testing.T) {
	x, root := Open(t.TempDir()), t.TempDir()
	r := record("proven", "qwen")
	r.Task = "a private matter"
	log(t, root, r)
	sync1(t, x, root)
	b, err := os.ReadFile(filepath.Join(x.dir, indexFile))
	if err != nil || strings.Contains(string(b), "private") {
		t.Errorf("%s %v", b, err)
	}
	if info, err := os.Stat(filepath.Join(x.dir, indexFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}
