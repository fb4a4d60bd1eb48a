//go:build unix

package toolloop

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"localllm/delegate"
)

var shell = delegate.Task{AllowShell: true}

// bash runs one command of the model and returns what it was told.
func bash(r *rig, task delegate.Task, line string) string {
	r.t.Helper()
	r.model.say, r.model.asked = []delegate.Completion{calls("run_bash", args{"command": line}), says("There is nothing else to be done.")}, nil
	r.run(task)
	return r.model.told(0)
}

func TestCommandsWorkOnACopyAndAreTakenOver(t *testing.T) {
	r := newRig(t).write(map[string]string{"a.txt": "one\n", "gone.txt": "stays\n", ".gitignore": "*.log\n", ".env": "KEY=hidden", "node_modules/m/x": "dep\n"})
	told := bash(r, shell, `echo two >> a.txt; mkdir new; echo three > new/b.txt; rm gone.txt; echo noise > x.log; echo noise > ö.log; echo noise > '!y.log'; printf 'a\0b' > bin; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit; echo evil > .envrc; cat .env; cat node_modules/m/x; echo "at $PWD"; exit 3`)
	for _, want := range []string{"exit 3\n", "dep\n", "at .\n", "[changed in the project: a.txt, new/b.txt]", ".envrc (", "bin (it is binary)", "gone.txt (removing a file is not possible)"} {
		if !strings.Contains(told, want) {
			t.Errorf("not told %q in\n%s", want, told)
		}
	}
	if strings.Contains(told, "hidden") || strings.Contains(told, ".log") {
		t.Errorf("told %s", told)
	}
	if r.read("a.txt") != "one\ntwo\n" || r.read("new/b.txt") != "three\n" || r.read("gone.txt") != "stays\n" {
		t.Error("the project is not as it should be")
	}
	for _, name := range []string{".envrc", "bin", "x.log", "ö.log", "!y.log", ".git/hooks/pre-commit"} {
		if r.read(name) != "ABSENT" {
			t.Errorf("%s was taken over", name)
		}
	}
}

// A command that shares our terminal could type into it, and be obeyed by the shell that we were started from.
func TestACommandHasASessionOfItsOwn(t *testing.T) {
	ours, err := unix.Getsid(0)
	if err != nil {
		t.Fatal(err)
	}
	told := bash(newRig(t), shell, "cut -d' ' -f6 /proc/self/stat")
	if theirs := strings.Fields(told); len(theirs) < 3 || theirs[1] != "0" || theirs[2] == strconv.Itoa(ours) {
		t.Errorf("ours is %d; told %q", ours, told)
	}
}

func TestACommandSeesTheFilesAsTheyAreNow(t *testing.T) {
	r := newRig(t,
		calls("run_bash", args{"command": "cat a.txt; rm b.txt; echo x > kept.bin; printf '\\0' > kept.bin"}),
		calls("write_file", args{"path": "a.txt", "content": "second"}),
		calls("run_bash", args{"command": "cat a.txt b.txt; test -f kept.bin && echo kept"}),
		says("The files are as they should be."),
	).write(map[string]string{"a.txt": "first\n", "b.txt": "again\n"})
	res := r.run(shell)
	if told := r.model.told(2); !strings.HasPrefix(told, "exit 0\nsecond\nagain\nkept\n") {
		t.Errorf("told %s", told)
	}
	if res.Status != delegate.Unverified || !strings.Contains(res.Text, "cat a.txt b.txt; test -f kept.bin && echo kept → exit 0") || !strings.Contains(res.Containment, ": ") {
		t.Errorf("%+v", res)
	}
}

// All that a command changed is put back with the rest, since it went through the change.
func TestWhatCommandsChangedIsPutBack(t *testing.T) {
	r := newRig(t, calls("run_bash", args{"command": "echo two > a.txt; echo new > b.txt"}), says("Changed both.")).write(map[string]string{"a.txt": "one\n"})
	res := r.run(delegate.Task{AllowShell: true, Attempts: 1, Verify: sh("false")})
	if res.Status != delegate.Failed || r.read("a.txt") != "one\n" || r.read("b.txt") != "ABSENT" {
		t.Errorf("%+v, a.txt %q", res, r.read("a.txt"))
	}
}

// Only what the caller allows is taken over, as for write_file.
func TestCommandsKeepToTheOutputs(t *testing.T) {
	r := newRig(t).write(map[string]string{"a.txt": "one\n", "b.txt": "one\n"})
	told := bash(r, delegate.Task{AllowShell: true, WriteRoots: []string{"sub"}}, "echo two | tee a.txt > b.txt; mkdir sub; echo x > sub/c.txt")
	if r.read("a.txt") != "one\n" || r.read("b.txt") != "one\n" || r.read("sub/c.txt") != "x\n" || !strings.Contains(told, "not taken over into the project: a.txt (only these may be written") {
		t.Errorf("told %s", told)
	}
}

func TestCommandsAreContained(t *testing.T) {
	r := newRig(t).write(map[string]string{"a.txt": "one\n"})
	box := r.loop.box()
	if box.Name == "none" {
		t.Log("this machine contains nothing; the result says so")
	}
	outside := t.TempDir()
	told := bash(r, shell, "echo x > "+outside+"/x; echo x > "+r.dir+"/direct; echo over")
	_, wrote := os.Stat(filepath.Join(outside, "x"))
	if contained := box.Name != "none"; contained == (wrote == nil) || contained && r.read("direct") != "ABSENT" || !strings.Contains(told, "over") {
		t.Errorf("%s: told %s", box.Name, told)
	}
	if says := box.Says(false); box.Name == "none" && !strings.HasPrefix(says, "none: ") {
		t.Errorf("says %q", says)
	}
}

// Links that a command leaves in the copy lead nothing of ours out of it.
func TestLinksInTheCopy(t *testing.T) {
	victim := t.TempDir()
	for _, name := range []string{"a.txt", "keep"} {
		if err := os.WriteFile(filepath.Join(victim, name), []byte("theirs\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := newRig(t,
		calls("run_bash", args{"command": "rm -r src && ln -s " + victim + " src; ln -s " + victim + "/keep b.txt"}),
		calls("run_bash", args{"command": "cat src/a.txt"}),
		says("There is nothing else to be done."),
	).write(map[string]string{"src/a.txt": "ours\n"})
	r.run(shell)
	if told := r.model.told(1); !strings.HasPrefix(told, "exit 0\nours\n") {
		t.Errorf("told %s", told)
	}
	for _, name := range []string{"a.txt", "keep"} {
		if raw, err := os.ReadFile(filepath.Join(victim, name)); err != nil || string(raw) != "theirs\n" {
			t.Errorf("%s is %q, %v", name, raw, err)
		}
	}
	if info, err := os.Lstat(filepath.Join(r.dir, "src")); err != nil || !info.IsDir() || r.read("b.txt") != "ABSENT" {
		t.Errorf("the link got into the project: %v", err)
	}
}

func TestCommandsEnd(t *testing.T) {
	r := newRig(t)
	r.model.say = []delegate.Completion{calls("run_bash", args{"command": "echo began; (setsid sleep 300 &); sleep 300", "timeout_s": 1}), says("It takes too long.")}
	started := time.Now()
	res := r.run(shell)
	if told := r.model.told(0); !strings.Contains(told, "did not end within 1 s and was killed\nbegan") || time.Since(started) > 30*time.Second || !strings.Contains(res.Text, "did not end within 1 s") {
		t.Errorf("%v: told %s", time.Since(started), told)
	}

	ctx, cancel := context.WithCancel(t.Context())
	r = newRig(t, calls("run_bash", args{"command": "sleep 300"}))
	r.model.onAsked = func(int) { time.AfterFunc(200*time.Millisecond, cancel) }
	started = time.Now()
	res, _ = r.runner.Run(ctx, delegate.Job{Task: delegate.Task{Task: "t", Mode: delegate.ModeAgent, AllowShell: true}, Slot: -1})
	if res.Status != delegate.Cancelled || time.Since(started) > 30*time.Second {
		t.Errorf("%+v after %v", res, time.Since(started))
	}
}

func TestCommandsHaveNoKeysAndNoInput(t *testing.T) {
	t.Setenv("SENTINEL_API_KEY", "sk-sentinel")
	r := newRig(t)
	told := bash(r, shell, "env; cat; echo end; yes | head -c 3000000")
	if strings.Contains(told, "sentinel") || !strings.Contains(told, "bytes left out") || len(told) > 40<<10 {
		t.Errorf("told %d bytes: %.2000s", len(told), told)
	}
}

func TestGoWorksInside(t *testing.T) {
	r := newRig(t).write(map[string]string{"go.mod": "module x\n\ngo 1.26\n", "x.go": "package x\n\nfunc One() int { return 1 }\n", "x_test.go": "package x\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) {\n\tif One() != 1 {\n\t\tt.Error()\n\t}\n}\n"})
	r.model.say = []delegate.Completion{calls("run_bash", args{"command": "go build ./... && go list ./... && gofmt -l .", "timeout_s": 300}), says("It is fine as it is.")}
	r.run(shell)
	if told := r.model.told(0); !strings.HasPrefix(told, "exit 0\nx\n") {
		t.Errorf("told %s", told)
	}
}
