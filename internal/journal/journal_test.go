package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"localllm/internal/paths"
	"localllm/internal/treefile"
)

type scene struct {
	t      *testing.T
	layout paths.Layout
	dir    string
	root   *treefile.Root
}

func newScene(t *testing.T) *scene {
	home := t.TempDir()
	s := &scene{t: t, layout: paths.Layout{State: filepath.Join(home, "state"), Run: filepath.Join(home, "run")}, dir: filepath.Join(home, "project")}
	s.must(os.MkdirAll(s.dir, 0o755))
	var err error
	s.root, err = treefile.Open(s.dir)
	s.must(err)
	t.Cleanup(func() { _ = s.root.Close() })
	return s
}

func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) put(name, body string) {
	s.t.Helper()
	s.must(os.WriteFile(filepath.Join(s.dir, name), []byte(body), 0o640))
	s.must(os.Chtimes(filepath.Join(s.dir, name), time.Time{}, time.Unix(1_500_000_000, 42)))
}

func (s *scene) want(name, body string) {
	s.t.Helper()
	got, err := os.ReadFile(filepath.Join(s.dir, name))
	switch {
	case body == "" && errors.Is(err, fs.ErrNotExist):
	case err != nil || string(got) != body:
		s.t.Errorf("%s is %q (%v), want %q", name, got, err, body)
	}
}

// begin writes two existing files and a new one in a new folder.
func (s *scene) begin() *Journal {
	s.t.Helper()
	s.put("a", "a before")
	s.put("b", "b before")
	j, err := Begin(s.layout, s.dir, "t/1", s.root)
	s.must(err)
	for name, body := range map[string]string{"a": "a ours", "b": "b ours", "new/er/c": "c ours"} {
		s.must(j.Keep(name))
		s.must(j.Put(name, []byte(body)))
	}
	return j
}

func (s *scene) journals() []string {
	left, _ := filepath.Glob(filepath.Join(s.layout.State, "journals", "*"))
	return left
}

func TestRepairAfterACrash(t *testing.T) {
	s := newScene(t)
	s.begin().Abandon()
	s.want("new/er/c", "c ours")
	done, err := Repair(s.layout, s.dir)
	s.must(err)
	slices.Sort(done.Files)
	if done.Changes != 1 || !slices.Equal(done.Files, []string{"a", "b", "new/er/c"}) || len(done.Conflicts) > 0 {
		t.Errorf("%+v", done)
	}
	s.want("a", "a before")
	s.want("b", "b before")
	info, err := os.Stat(filepath.Join(s.dir, "a"))
	s.must(err)
	if !info.ModTime().Equal(time.Unix(1_500_000_000, 42)) || info.Mode() != 0o640 {
		t.Errorf("time %v, mode %v", info.ModTime(), info.Mode())
	}
	left, err := os.ReadDir(s.dir)
	s.must(err)
	if len(left) != 2 || len(s.journals()) > 0 {
		t.Errorf("left: %v, journals %v", left, s.journals())
	}
	if again, err := Repair(s.layout, s.dir); err != nil || again.Changes != 0 {
		t.Errorf("a second repair: %+v, %v", again, err)
	}
}

// A crash at any point of the log, a torn line included, is repaired.
func TestRepairFromEveryPrefixOfTheLog(t *testing.T) {
	s := newScene(t)
	j := s.begin()
	whole, err := os.ReadFile(filepath.Join(j.dir, logName))
	s.must(err)
	s.must(j.Commit())
	for cut := 0; cut <= len(whole); cut += 29 {
		s := newScene(t)
		j := s.begin()
		s.must(os.Truncate(filepath.Join(j.dir, logName), int64(min(cut, len(whole)))))
		j.Abandon()
		if _, err := Repair(s.layout, s.dir); err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		// What the log does not tell was, in a real crash, not done yet: only what it tells is put back.
		if cut == len(whole) {
			s.want("a", "a before")
		}
		if len(s.journals()) > 0 {
			t.Fatalf("cut at %d: journals are left", cut)
		}
	}
}

func TestRepairLeavesTheLiving(t *testing.T) {
	s := newScene(t)
	j := s.begin()
	done, err := Repair(s.layout, s.dir)
	s.must(err)
	if done.Changes != 0 {
		t.Errorf("%+v", done)
	}
	s.want("a", "a ours")
	s.must(j.Commit())
	s.want("a", "a ours")
	if len(s.journals()) > 0 {
		t.Errorf("left: %v", s.journals())
	}
}

func TestRepairLeavesWhatSomebodyEdited(t *testing.T) {
	s := newScene(t)
	s.begin().Abandon()
	s.put("a", "theirs")
	s.put("new/er/other", "theirs too")
	s.must(os.Remove(filepath.Join(s.dir, "b")))
	done, err := Repair(s.layout, s.dir)
	s.must(err)
	if !slices.Equal(done.Conflicts, []string{"a", "b"}) || len(done.Saved) != 1 {
		t.Fatalf("%+v", done)
	}
	s.want("a", "theirs")
	s.want("b", "")
	s.want("new/er/c", "")
	s.want("new/er/other", "theirs too")
	for name, body := range map[string]string{"a": "a before", "b": "b before"} {
		if got, _ := os.ReadFile(filepath.Join(done.Saved[0], name)); string(got) != body {
			t.Errorf("the earlier form of %s was saved as %q", name, got)
		}
	}
}

func TestCommittedIsFinalHoweverItDies(t *testing.T) {
	s := newScene(t)
	j := s.begin()
	s.must(os.Remove(filepath.Join(j.dir, logName))) // the first thing that Commit does
	j.Abandon()
	done, err := Repair(s.layout, s.dir)
	s.must(err)
	if done.Changes != 0 || len(s.journals()) > 0 {
		t.Errorf("%+v, left %v", done, s.journals())
	}
	s.want("a", "a ours")
}

func TestDamagedJournals(t *testing.T) {
	rows := map[string]func(s *scene, j *Journal){
		"a copy is damaged": func(s *scene, j *Journal) {
			s.must(os.WriteFile(filepath.Join(j.dir, j.byPath["a"].Before.Copy), []byte("x"), 0o600))
		},
		"a later format": func(s *scene, j *Journal) {
			s.must(os.WriteFile(filepath.Join(j.dir, logName), []byte(`{"head":{"format":9}}`+"\n"), 0o600))
		},
		"no journal at all": func(s *scene, j *Journal) {
			s.must(os.WriteFile(filepath.Join(j.dir, logName), []byte(`{"path":"a"}`+"\n"), 0o600))
		},
	}
	for name, damage := range rows {
		s := newScene(t)
		j := s.begin()
		damage(s, j)
		j.Abandon()
		if _, err := Repair(s.layout, s.dir); err == nil || len(s.journals()) != 1 {
			t.Errorf("%s: %v, journals %v", name, err, s.journals())
		}
		s.want("a", "a ours") // nothing is guessed
	}
}

// A log with paths that lead elsewhere does not lead there.
func TestForeignPathsInAJournal(t *testing.T) {
	s := newScene(t)
	victim := filepath.Join(s.dir, "..", "victim")
	s.must(os.WriteFile(victim, []byte("v"), 0o600))
	j := s.begin()
	h := Sum([]byte("v"))
	f, err := os.OpenFile(filepath.Join(j.dir, logName), os.O_APPEND|os.O_WRONLY, 0)
	s.must(err)
	_, err = f.WriteString(`{"path":"../victim","was":{"exists":false}}` + "\n" + `{"path":"../victim","write":"` + h + `","temp":"../victim"}` + "\n" + `{"dir":"../empty"}` + "\n")
	s.must(errors.Join(err, f.Close()))
	s.must(os.Mkdir(filepath.Join(s.dir, "..", "empty"), 0o700))
	j.Abandon()
	_, _ = Repair(s.layout, s.dir)
	for _, p := range []string{"victim", "empty"} {
		if _, err := os.Stat(filepath.Join(s.dir, "..", p)); err != nil {
			t.Error(err)
		}
	}
}

func TestNothingToRepairCostsNothing(t *testing.T) {
	s := newScene(t)
	best := time.Hour
	for range 20 {
		started := time.Now()
		if _, err := Repair(s.layout, s.dir); err != nil {
			t.Fatal(err)
		}
		best = min(best, time.Since(started))
	}
	t.Logf("nothing to repair: %v", best)
	if best > time.Millisecond {
		t.Errorf("nothing to repair took %v", best)
	}
}

func TestSettleWaitsForARepairUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		j := s.begin()
		ended := make(chan error, 1)
		var done Repaired
		go func() {
			var err error
			done, err = Settle(t.Context(), s.layout, s.dir)
			ended <- err
		}()
		synctest.Wait() // until it waits
		if len(ended) > 0 {
			t.Fatal("it did not wait")
		}
		j.Abandon()
		s.must(<-ended)
		if done.Changes != 1 {
			t.Errorf("%+v", done)
		}
		s.want("a", "a before")
	})
}

func TestOpeningIsSweptLater(t *testing.T) {
	s := newScene(t)
	home, err := Home(s.layout, s.dir)
	s.must(err)
	for name, age := range map[string]time.Duration{".new-old": 2 * time.Hour, ".new-now": 0} {
		s.must(os.MkdirAll(filepath.Join(home, name), 0o700))
		s.must(os.Chtimes(filepath.Join(home, name), time.Time{}, time.Now().Add(-age)))
	}
	_, err = Repair(s.layout, s.dir)
	s.must(err)
	left, _ := os.ReadDir(home)
	if len(left) != 1 || left[0].Name() != ".new-now" {
		t.Errorf("left: %v", left)
	}
}

// Changes begin and end while others look for what a crash left: nobody takes work under way for it.
func TestManyAtOnce(t *testing.T) {
	s := newScene(t)
	stop := make(chan struct{})
	var repairs, changes sync.WaitGroup
	for range 2 {
		repairs.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if done, err := Repair(s.layout, s.dir); err != nil || done.Changes > 0 {
					t.Errorf("%+v %v", done, err)
					return
				}
			}
		})
	}
	for i := range 4 {
		changes.Go(func() {
			name := fmt.Sprint("f", i)
			for n := range 40 {
				j, err := Begin(s.layout, s.dir, name, s.root)
				if err == nil {
					err = errors.Join(j.Keep(name), j.Put(name, fmt.Append(nil, n)))
				}
				if err == nil && n%2 == 0 {
					err = j.Commit()
				} else if err == nil {
					_, err = j.Undo()
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	changes.Wait()
	close(stop)
	repairs.Wait()
	for i := range 4 {
		s.want(fmt.Sprint("f", i), "38")
	}
	if _, err := Repair(s.layout, s.dir); err != nil || len(s.journals()) > 0 {
		t.Errorf("%v, left %v", err, s.journals())
	}
}
