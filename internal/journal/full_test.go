//go:build unix

package journal

import (
	"os/signal"
	"syscall"
	"testing"
)

// A line of the log that a full disk tore must not hide those that come after it, when there is room again.
func TestWrittenOnAfterTheDiskWasFull(t *testing.T) {
	s := newScene(t)
	s.put("one", "old\n")
	s.put("two", "old\n")
	j, err := Begin(s.layout, s.dir, "d-full", s.root)
	s.must(err)
	s.must(j.Keep("one"))
	s.must(j.Keep("two"))

	// The limit of a file's size stands for the disk: the log has the most in it.
	signal.Ignore(syscall.SIGXFSZ)
	t.Cleanup(func() { signal.Reset(syscall.SIGXFSZ) })
	var old syscall.Rlimit
	s.must(syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old))
	full := old
	full.Cur = uint64(j.size + 10)
	s.must(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &full))
	failed := j.Put("one", []byte("new\n"))
	s.must(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old))
	if failed == nil {
		t.Fatal("the line was written whole")
	}
	s.must(j.Put("two", []byte("new\n")))
	s.want("two", "new\n")
	j.Abandon()
	if _, err := Repair(s.layout, s.dir); err != nil {
		t.Fatal(err)
	}
	s.want("one", "old\n")
	s.want("two", "old\n")
}
