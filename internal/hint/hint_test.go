package hint

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
)

func TestHintsSurviveWrappingAndJoining(t *testing.T) {
	inner := New("no engine", "install Ollama", "run localllm doctor")
	wrapped := fmt.Errorf("enabling: %w", Add(inner, "run localllm doctor", "free some memory"))
	joined := errors.Join(errors.New("other"), wrapped)

	want := []string{"run localllm doctor", "free some memory", "install Ollama"}
	if got := Of(joined); !reflect.DeepEqual(got, want) {
		t.Errorf("Of = %q, want %q", got, want)
	}
	if got := wrapped.Error(); got != "enabling: no engine" {
		t.Errorf("hints leak into the message: %q", got)
	}
	if !errors.Is(joined, inner) {
		t.Error("a hint hides the error below it")
	}
}

func TestNoErrorHasNoHints(t *testing.T) {
	if Add(nil, "x") != nil {
		t.Error("Add(nil) must stay nil")
	}
	if got := Of(errors.New("plain")); got != nil {
		t.Errorf("Of(plain) = %q", got)
	}
}
