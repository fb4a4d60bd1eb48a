package session

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"localllm/internal/proc"
)

// tree is a made-up process table: child first.
type tree []process

func (tr tree) at(pid int) (process, error) {
	for i, p := range tr {
		if p.identity.PID == pid {
			if i+1 < len(tr) {
				p.parent = tr[i+1].identity.PID
			}
			return p, nil
		}
	}
	return process{}, proc.ErrNotThere
}

// grow makes a chain of processes, child first. A name is NAME, *NAME for the leader of its session, and
// NAME:ARGUMENT,… where the arguments matter.
func grow(names ...string) tree {
	var tr tree
	for i, n := range names {
		n, leader := strings.CutPrefix(n, "*")
		name, args, _ := strings.Cut(n, ":")
		p := process{identity: proc.Identity{PID: 1000 - i, Start: uint64(i + 1)}, name: name, leader: leader, args: []string{name}}
		if args != "" {
			p.args = append(p.args, strings.Split(args, ",")...)
		}
		tr = append(tr, p)
	}
	return tr
}

func none(string) string { return "" }

func TestWhoIsMyClient(t *testing.T) {
	for _, c := range []struct {
		name   string
		chain  []string // from us upwards
		server bool
		want   string // part of Who
		known  bool
	}{
		{"server of Claude Code", []string{"localllm", "claude", "*bash"}, true, "Claude Code (pid 999)", true},
		{"server behind a shell", []string{"localllm", "sh", "codex", "*bash"}, true, "Codex (pid 998)", true},
		{"server behind npx", []string{"localllm", "node:/usr/lib/npx-cli.js", "opencode"}, true, "OpenCode (pid 998)", true},
		{"Claude Code as a script", []string{"localllm", "node:/usr/local/bin/claude", "*zsh"}, true, "Claude Code (pid 999)", true},
		{"Codex from its package", []string{"localllm", "node:--no-warnings,/x/node_modules/@openai/codex/bin/start.js", "*zsh"}, true, "Codex (pid 999)", true},
		{"Gemini from its package", []string{"localllm", "node:/x/node_modules/@google/gemini-cli/dist/index.js", "*zsh"}, true, "Gemini CLI (pid 999)", true},
		{"server of a client that nobody knows", []string{"localllm", "newagent", "*bash", "code"}, true, "newagent (pid 999)", false},
		{"a known client in the terminal of another", []string{"localllm", "claude", "*bash", "code"}, true, "Claude Code (pid 999)", true},
		{"command in an agent's own shell", []string{"localllm", "bash", "claude", "*zsh", "login"}, false, "Claude Code (pid 998)", true},
		{"command in an agent's shell that leads a session", []string{"localllm", "*bash", "claude", "*zsh"}, false, "Claude Code (pid 998)", true},
		{"command in a terminal", []string{"localllm", "*zsh", "gnome-terminal", "systemd"}, false, "the shell zsh (pid 999)", false},
		{"command in a script in a terminal", []string{"localllm", "bash:setup.sh", "make", "*zsh", "sshd"}, false, "the shell zsh (pid 997)", false},
		{"login shell by its dash", []string{"localllm", "-bash", "sshd"}, false, "the shell bash (pid 999)", false},
		{"a shell that leads nothing", []string{"localllm", "sh", "cron"}, false, "the shell sh (pid 999)", false},
		{"no shell at all", []string{"localllm", "cron", "systemd"}, false, "cron (pid 999)", false},
		{"node is not a client", []string{"localllm", "node:/srv/app.js", "*bash"}, false, "the shell bash (pid 998)", false},
		{"a script called after a client elsewhere", []string{"localllm", "node:/home/claude/app/index.js", "*bash"}, false, "the shell bash (pid 998)", false},
	} {
		tr := grow(c.chain...)
		b, err := find(tr.at, 1000, none, c.server)
		if err != nil || !strings.Contains(b.Who, c.want) || b.Known != c.known {
			t.Errorf("%s: %+v, %v, want %s", c.name, b, err, c.want)
		}
		if b.Client.Start == 0 {
			t.Errorf("%s: no start time: %+v", c.name, b.Client)
		}
	}
}

func TestEnvironmentOfTheClient(t *testing.T) {
	tr := grow("localllm", "bash", "helper", "wrapped-client", "*zsh")
	env := map[string]string{"CLAUDE_PID": "997", "CLAUDE_CODE_SESSION_ID": "s-1", "CLAUDE_PROJECT_DIR": "/p"}
	b, err := find(tr.at, 1000, func(n string) string { return env[n] }, false)
	if err != nil || b.Client.PID != 997 || !b.Known || b.Session != "s-1" || b.Project != "/p" {
		t.Errorf("%+v, %v", b, err)
	}
	// A pid that is no ancestor was inherited from somewhere else, or is somebody else's now.
	for _, pid := range []string{"4711", "1000", "-1", "x", "1"} {
		env["CLAUDE_PID"] = pid
		if b, err := find(tr.at, 1000, func(n string) string { return env[n] }, false); err != nil || b.Client.PID != 996 {
			t.Errorf("CLAUDE_PID=%s: %+v, %v", pid, b, err)
		}
	}
}

func TestNoParentToBeSeen(t *testing.T) {
	if b, err := find(grow("localllm").at, 1000, none, true); err == nil {
		t.Errorf("bound to %+v", b)
	}
}

func TestRing(t *testing.T) {
	tr := grow("localllm", "a", "b")
	at := func(pid int) (process, error) {
		p, err := tr.at(pid)
		if p.name == "b" {
			p.parent = 999
		}
		return p, err
	}
	if _, err := find(at, 1000, none, false); err != nil {
		t.Error(err)
	}
}

func TestRealProcesses(t *testing.T) {
	b, err := ForServer(none)
	if err != nil || b.Client.PID == 0 || !b.Held || b.Who == "" {
		t.Errorf("%+v, %v", b, err)
	}
	if b, err := ForCommand(none); err != nil || !b.Client.Alive() || b.Held {
		t.Errorf("%+v, %v", b, err)
	}
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	if b, err := WhilePID(pid); err != nil || b.Client.PID != pid || !strings.Contains(b.Who, "sleep") {
		t.Errorf("%+v, %v", b, err)
	}
	if !Inside(pid, proc.Self()) || Inside(os.Getpid(), proc.Identity{PID: pid}) {
		t.Error("the child is inside of us, and we are not inside of it")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if b, err := WhilePID(pid); err == nil {
		t.Errorf("bound to a dead process: %+v", b)
	}
}

func TestHook(t *testing.T) {
	for _, c := range []struct {
		in   string
		ends bool
		id   string
		bad  bool
	}{
		{`{"session_id":"a","cwd":"/p","hook_event_name":"SessionEnd","reason":"clear"}`, false, "a", false},
		{`{"session_id":"a","hook_event_name":"SessionEnd","reason":"resume"}`, false, "a", false},
		{`{"session_id":"a","hook_event_name":"SessionEnd","reason":"prompt_input_exit","new":{"x":1}}`, true, "a", false},
		{`{"hook_event_name":"SessionEnd"}`, true, "old", false},
		{``, false, "", true},
		{`[1]`, false, "", true},
	} {
		h, err := ReadHook(strings.NewReader(c.in))
		if (err != nil) != c.bad {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if err != nil {
			continue
		}
		if b := h.Apply(Binding{Session: "old", Project: "/q"}); h.Ends() != c.ends || b.Session != c.id || b.Project == "" {
			t.Errorf("%s: %+v, ends %v", c.in, b, h.Ends())
		}
	}
}

func FuzzReadHook(f *testing.F) {
	f.Add(`{"session_id":"a","cwd":"/p","hook_event_name":"SessionEnd","reason":"clear"}`)
	f.Add(`{"session_id":7}`)
	f.Add(`null`)
	f.Fuzz(func(t *testing.T, text string) {
		h, err := ReadHook(strings.NewReader(text))
		if err == nil && h.Reason == "clear" && h.Ends() {
			t.Error("a cleared session does not end its client")
		}
	})
}
