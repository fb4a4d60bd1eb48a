package mcpserver

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestStormOfProgressAndCancels(t *testing.T) {
	c := start(t)
	c.initialize("2025-11-25", `{}`)
	// 300 calls that end by themselves and 100 that end only by being cancelled, some of them still waiting for a worker.
	go func() {
		for i := range 400 {
			word := "busy"
			if i%4 == 3 {
				word = "endless"
			}
			c.send(taskLine(i, true, word))
		}
		for i := 3; i < 400; i += 4 {
			c.send(cancelLine(i))
		}
	}()
	answered := map[string]bool{}
	last := map[string]float64{}
	late, falling, notes := 0, 0, 0
	for len(answered) < 300 {
		m := c.next()
		if m.Method == "notifications/progress" {
			notes++
			id := strings.TrimPrefix(fmt.Sprint(m.Params.ProgressToken), "p")
			if answered[id] {
				late++
			}
			if p, ok := last[id]; ok && m.Params.Progress <= p {
				falling++
			}
			last[id] = m.Params.Progress
			continue
		}
		id := fmt.Sprint(m.ID)
		if answered[id] {
			t.Errorf("%s was answered twice", id)
		}
		answered[id] = true
	}
	// What comes after a ping's answer would be late: nothing is in flight any more.
	c.send(`{"jsonrpc":"2.0","id":"last","method":"ping"}`)
	if m := c.next(); m.ID != "last" {
		t.Errorf("after the last answer came %+v", m)
	}
	for i := 3; i < 400; i += 4 {
		if answered[fmt.Sprint(i)] {
			t.Errorf("the cancelled call %d was answered", i)
		}
	}
	if late > 0 || falling > 0 || notes < 400 || len(last) < 300 {
		t.Errorf("%d notifications for %d calls: %d late, %d not growing", notes, len(last), late, falling)
	}
	t.Logf("%d notifications, %d answers", notes, len(answered))
}

func TestCancelReachesACallThatWaitsForAWorker(t *testing.T) {
	c := start(t)
	c.initialize("2025-06-18", `{}`)
	for i := range workers {
		c.send(taskLine(i, false, "endless"))
	}
	c.send(taskLine("queued", true, "endless"), cancelLine("queued"))
	for i := range workers {
		c.send(cancelLine(i))
	}
	// All of the workers are free again, so the queued call has been taken up and dropped.
	for i := range workers {
		c.send(taskLine(fmt.Sprint("after", i), false, "quick"))
	}
	for range workers {
		if m := c.next(); !strings.HasPrefix(fmt.Sprint(m.ID), "after") {
			t.Fatalf("unexpected: %+v", m)
		}
	}
}

func TestSixtyFourCallsRunAtOnce(t *testing.T) {
	c := start(t)
	c.initialize("2025-11-25", `{}`)
	for i := range 64 {
		c.send(taskLine(i, i%2 == 0, "together"))
	}
	for range 64 {
		if m := c.answer(); m.Result.IsError || m.Error != nil {
			t.Fatalf("%+v", m)
		}
	}
}

func TestFiveMegabytesArrive(t *testing.T) {
	c := start(t)
	c.initialize("2025-11-25", `{}`)
	task := "length " + strings.Repeat("ü", 5<<20/2)
	c.send(taskLine(1, false, task))
	m := c.answer()
	var got struct{ Length int }
	if err := json.Unmarshal(m.Result.StructuredContent, &got); err != nil || got.Length != len(task) {
		t.Errorf("%d of %d bytes, %v", got.Length, len(task), err)
	}
}

func TestNonsenseGetsErrorsAndDoesNoHarm(t *testing.T) {
	rows := []struct {
		line, want string
		code       int
	}{
		{`garbage`, "Parse error", -32700},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call"`, "Parse error", -32700},
		{`[]`, "parse", -32700},
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, "parse", -32700},
		{`"text"`, "parse", -32700},
		{"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"\xff\xfe\"}", "", -32601},
		{`{"jsonrpc":"1.0","id":3,"method":"ping"}`, "version", -32600},
		{`{"jsonrpc":"2.0","id":4,"method":"no/such"}`, "no/such", -32601},
		{`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":"x"}`, "", -32600},
		{`{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":7}}`, "", -32600},
		{`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"other","arguments":{}}}`, "other", -32602},
		{`{"jsonrpc":"2.0","id":8,"method":"tools/call"}`, "", -32602},
		{`{"jsonrpc":"2.0","id":9,"method":"initialize","params":[1]}`, "", -32600},
		{`{"jsonrpc":"2.0","id":10,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}`, "2099-01-01", -32022},
		{`{"jsonrpc":"2.0","id":11,"method":` + strings.Repeat(`[`, 20000) + strings.Repeat(`]`, 20000) + `}`, "", -32700},
	}
	c := start(t)
	c.initialize("2025-11-25", `{}`)
	for _, r := range rows {
		c.send(r.line)
		m := c.answer()
		if m.Error == nil || m.Error.Code != r.code || !strings.Contains(strings.ToLower(m.Error.Message), strings.ToLower(r.want)) {
			t.Errorf("%.100q: %+v, want %d %q", r.line, m.Error, r.code, r.want)
		}
	}
	// What is no request gets no answer; a cancellation of nothing does nothing.
	c.send("", "   ", "\r", `{"jsonrpc":"2.0","method":"no/such"}`, cancelLine(77), cancelLine(nil), cancelLine([]int{1}),
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":7}`, `{"jsonrpc":"2.0","id":5,"result":{}}`)
	for raw, want := range map[string]string{`7`: "JSON object", `{}`: "action is missing", `{"action":"delegate"}`: "task is missing",
		`{"action":"delegate","task":"x","verfy":"y"}`: `hint: did you mean "verify"?`, `null`: "action is missing"} {
		c.send(callLine("w", true, json.RawMessage(raw)))
		if m := c.answer(); !m.Result.IsError || !strings.Contains(m.text(), want) {
			t.Errorf("arguments %s: %+v, want %q", raw, m, want)
		}
	}
	c.send(`{"jsonrpc":"2.0","id":"end","method":"ping"}`)
	if m := c.answer(); m.ID != "end" {
		t.Errorf("the server is out of step: %+v", m)
	}
	// Half a message, then the end.
	if _, err := c.in.Write([]byte(`{"jsonrpc":"2.0","id":99,"method":"pi`)); err != nil {
		t.Fatal(err)
	}
	_ = c.in.Close()
	if err := c.end(20 * time.Second); err != nil {
		t.Errorf("ended with %v: %s", err, c.stderr)
	}
}

func TestProtocolVersions(t *testing.T) {
	for asked, want := range map[string]string{"2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25", "1999-01-01": "2025", "": "2025"} {
		c := start(t)
		if m := c.initialize(asked, `{}`); !strings.HasPrefix(m.Result.ProtocolVersion, want) || m.Result.Instructions != Instructions {
			t.Errorf("%s: %+v", asked, m)
		}
	}
	// The newest clients don't initialize.
	c := start(t)
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	c.send(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + meta + `}}`)
	if m := c.answer(); m.Error != nil || m.Result.Instructions != Instructions {
		t.Errorf("discover: %+v", m)
	}
	c.send(`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{` + meta + `}}`)
	if m := c.answer(); len(m.Result.Tools) != 1 {
		t.Errorf("list: %+v", m)
	}
	c.send(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"local_llm","arguments":{"action":"status"},` + meta + `}}`)
	if m := c.answer(); m.Result.IsError || len(m.Result.StructuredContent) == 0 {
		t.Errorf("call: %+v", m)
	}
}

func TestErrorsAreForTheModelToRead(t *testing.T) {
	c := start(t)
	c.initialize("2025-11-25", `{}`)
	for task, want := range map[string]string{
		"fail":  "no engine is installed\nhint: install Ollama\nhint: run localllm doctor",
		"panic": "internal error: boom\nhint: the server goes on; its log has the stack",
		"list":  "writing the result of delegate: it is no object",
	} {
		c.send(taskLine(task, true, task))
		if m := c.answer(); !m.Result.IsError || m.text() != want || m.Result.StructuredContent != nil {
			t.Errorf("%s: %+v", task, m)
		}
	}
	if !c.says("goroutine") {
		t.Errorf("no stack of the panic in the log: %s", c.stderr)
	}
}

func TestStrayPrintsStayOutOfTheProtocol(t *testing.T) {
	c := start(t)
	c.initialize("2025-11-25", `{}`)
	c.send(taskLine(1, true, "print"))
	if m := c.answer(); m.Result.IsError {
		t.Error(m.text())
	}
	for _, want := range []string{"a stray line", "another", "from a child", "more"} {
		if !c.says(want) {
			t.Errorf("the standard error lacks %q: %s", want, c.stderr)
		}
	}
}

func TestEveryWayOfLeavingIsNoticed(t *testing.T) {
	rows := map[string]func(c *client){
		"interrupt":   func(c *client) { _ = c.cmd.Process.Signal(os.Interrupt) },
		"terminate":   func(c *client) { _ = c.cmd.Process.Signal(syscall.SIGTERM) },
		"hang-up":     func(c *client) { _ = c.cmd.Process.Signal(syscall.SIGHUP) },
		"no input":    func(c *client) { _ = c.in.Close() },
		"no reader":   func(c *client) { _ = c.out.Close(); c.send(`{"jsonrpc":"2.0","id":"x","method":"ping"}`) },
		"all at once": func(c *client) { _ = c.cmd.Process.Signal(syscall.SIGTERM); _ = c.in.Close(); _ = c.out.Close() },
	}
	for name, leave := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t)
			c.initialize("2025-11-25", `{}`)
			c.send(taskLine("deaf", true, "deaf"))
			for c.next().Params.Message == "" { // it runs
			}
			leave(c)
			if err := c.end(10 * time.Second); err != nil {
				t.Errorf("ended with %v: %s", err, c.stderr)
			}
			if n := strings.Count(c.stderr.String(), "LEAVING"); n != 1 {
				t.Errorf("leaving was noticed %d times: %s", n, c.stderr)
			}
		})
	}
}

func TestBrokenPipeSignalDoesNotKill(t *testing.T) {
	c := start(t)
	c.initialize("2025-11-25", `{}`)
	_ = c.cmd.Process.Signal(syscall.SIGPIPE)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	c.answer()
}

func TestAnswersBeforeTheEndOfInputComeOut(t *testing.T) {
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	status := callLine(2, false, map[string]any{"action": "status"})
	for i := range 40 {
		c := start(t)
		sent := []string{hello, status}[:1+i%2]
		c.send(sent...)
		_ = c.in.Close()
		seen := 0
		for range c.lines {
			seen++
		}
		if seen != len(sent) {
			t.Fatalf("round %d: %d answers to %d requests", i, seen, len(sent))
		}
	}
}

func TestProjectFolder(t *testing.T) {
	root, other := t.TempDir(), t.TempDir()
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	ask := func(c *client) (f struct {
		Project  Folder
		Progress bool
	}) {
		c.send(callLine("s", false, map[string]any{"action": "status"}))
		m := c.next()
		if m.Method == "roots/list" {
			raw, _ := json.Marshal(m.ID)
			c.send(`{"jsonrpc":"2.0","id":` + string(raw) + `,"result":{"roots":[{"uri":"https://x"},{"uri":"file:///no/such"},{"uri":"file://` + root + `"}]}}`)
			m = c.next()
		}
		if err := json.Unmarshal(m.Result.StructuredContent, &f); err != nil {
			t.Fatalf("%v in %+v", err, m)
		}
		return f
	}
	rows := []struct {
		env, capabilities string
		want              Folder
	}{
		{"CLAUDE_PROJECT_DIR=" + other, `{"roots":{}}`, Folder{other, "CLAUDE_PROJECT_DIR"}},
		{"CLAUDE_PROJECT_DIR=/no/such", `{"roots":{"listChanged":true}}`, Folder{root, "the client's roots"}},
		{"X=", `{}`, Folder{wd, "the working folder"}},
	}
	for _, r := range rows {
		c := start(t, r.env)
		c.initialize("2025-06-18", r.capabilities)
		got := ask(c)
		if got.Project != r.want || got.Progress {
			t.Errorf("%s, %s: %+v, want %v and no progress", r.env, r.capabilities, got, r.want)
		}
		if again := ask(c); again.Project != r.want {
			t.Errorf("the second call got %+v", again)
		}
	}
}

// A client that takes its time to name its roots sees progress all the same, and at once.
func TestProgressBeforeTheRootsAreKnown(t *testing.T) {
	c := start(t, "CLAUDE_PROJECT_DIR=")
	c.initialize("2025-06-18", `{"roots":{}}`)
	c.send(callLine("s", true, map[string]any{"action": "status"}))
	for _, want := range []string{"notifications/progress", "roots/list"} {
		if m := c.next(); m.Method != want {
			t.Fatalf("%+v came, want %s", m, want)
		}
	}
}
