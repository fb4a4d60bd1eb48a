package app

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"localllm/delegate"
)

// far is a model behind an endpoint that is not on this machine; it notes what it is sent.
type far struct {
	delegate.Completer
	sent strings.Builder
}

func (f *far) Limits() delegate.Limits { return delegate.Limits{Context: 32768, Model: "m"} }

func (f *far) Count(_ context.Context, messages []delegate.Message, _ []delegate.Tool) (int, bool, error) {
	for _, m := range messages {
		f.sent.WriteString(m.Content)
	}
	return 321, true, nil
}

// An endpoint that counts tokens gets the text of the files. Advice once sent them with their secrets.
func TestAdviceHidesSecretsFromAFarEndpoint(t *testing.T) {
	a := open(t)
	project := t.TempDir()
	const secret = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
	if err := os.WriteFile(filepath.Join(project, "client.go"), []byte("package client\n\nconst token = \""+secret+"\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx := WithCall(t.Context(), &Call{Project: project})
	model := &far{}
	to := &target{Completer: model, limits: model.Limits(), release: func() {}}
	advice, err := a.advise(ctx, project, delegate.Task{Task: "Explain it.", ContextFiles: []string{"client.go"}}, to)
	if err != nil {
		t.Fatal(err)
	}
	if sent := model.sent.String(); !strings.Contains(sent, "package client") || strings.Contains(sent, secret) {
		t.Errorf("it was sent %q", sent)
	}
	if advice.Window.Prompt != 321 {
		t.Errorf("the endpoint's count was not taken: %+v", advice.Window)
	}
}

// The task's own text was once counted twice, which halved the window for a long one.
func TestAdviceCountsTheTaskOnce(t *testing.T) {
	a := open(t)
	project := t.TempDir()
	ctx := WithCall(t.Context(), &Call{Project: project})
	prompt := func(text string) int {
		advice, err := a.advise(ctx, project, delegate.Task{Task: text}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return advice.Window.Prompt
	}
	if more := prompt(strings.Repeat("word ", 6001)) - prompt("word "); more != 10000 {
		t.Errorf("30,000 more bytes are %d more tokens, want 10,000", more)
	}
}
