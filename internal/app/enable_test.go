package app

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"localllm/capability"
	"localllm/internal/hint"
	"localllm/internal/request"
	"localllm/lifecycle"
)

func TestTheShortFormNamesModelAndPersistence(t *testing.T) {
	for short, want := range map[request.LLM]request.Enable{
		"true":                            {},
		"true:persist":                    {Persist: true},
		"qwen3-coder:30b":                 {Model: "qwen3-coder:30b"},
		"qwen3-coder:30b:persist":         {Model: "qwen3-coder:30b", Persist: true},
		"hf:owner/repo-GGUF:Q4_K_M":       {Model: "hf:owner/repo-GGUF:Q4_K_M"},
		"persist":                         {Model: "persist"}, // only a last segment after a colon is the flag
		"registry/model:persist:persist":  {Model: "registry/model:persist", Persist: true},
		"C:\\models\\tiny.gguf:persist":   {Model: "C:\\models\\tiny.gguf", Persist: true},
		"/models/with:colon.gguf":         {Model: "/models/with:colon.gguf"},
		"/models/with:colon.gguf:persist": {Model: "/models/with:colon.gguf", Persist: true},
	} {
		in := request.Enable{LLM: short}
		if err := oneModel(&in); err != nil {
			t.Errorf("%s: %v", short, err)
		}
		if in.Model != want.Model || in.Persist != want.Persist || in.LLM != "" {
			t.Errorf("%s: model %q, persist %v; want %q, %v", short, in.Model, in.Persist, want.Model, want.Persist)
		}
	}
	both := request.Enable{LLM: "a:1b", Model: "b:1b"}
	var bad *request.Error
	if err := oneModel(&both); !errors.As(err, &bad) || bad.Field != "llm" {
		t.Errorf("two models at once: %v", err)
	}
}

func TestAStepDownNeverBeginsADownload(t *testing.T) {
	got := installedOnly([]capability.Choice{{Model: "a", Installed: true}, {Model: "b"}, {Model: "c", Installed: true}})
	if names := modelsOf(got); !slices.Equal(names, []string{"a", "c"}) {
		t.Errorf("left are %v", names)
	}
}

func modelsOf(choices []capability.Choice) []string {
	names := make([]string, len(choices))
	for i, c := range choices {
		names[i] = c.Model
	}
	return names
}

func TestAFileThatIsNotThereIsRefusedBeforeAnythingElse(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "there.gguf")
	if err := os.WriteFile(file, []byte("GGUF"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := fileThere(file); err != nil {
		t.Errorf("a file that is there: %v", err)
	}
	if err := fileThere("qwen3:8b"); err != nil {
		t.Errorf("a tag is no file: %v", err)
	}
	for _, path := range []string{filepath.Join(dir, "none.gguf"), "./nowhere/x.gguf"} {
		err := fileThere(path)
		var start *lifecycle.StartError
		if !errors.As(err, &start) || start.Cause != lifecycle.NoSuchModel || !strings.Contains(err.Error(), filepath.Base(path)) || len(hint.Of(err)) == 0 {
			t.Errorf("%s: %v, hints %q", path, err, hint.Of(err))
		}
	}
}

func TestWhyNothingCanBeEnabledIsTheNearestReason(t *testing.T) {
	err := cannotEnable(&capability.Report{
		Reasons: []string{"no usable GPU was found", "nothing fits"}, Hints: []string{"buy one"},
		Rejected: []capability.Rejection{{Model: "m", Reason: "is encrypted"}},
	})
	if !errors.Is(err, ErrCannotEnable) || !strings.Contains(err.Error(), "m: is encrypted") || !slices.Equal(hint.Of(err), []string{"buy one"}) {
		t.Errorf("%v, hints %q", err, hint.Of(err))
	}
	err = cannotEnable(&capability.Report{Reasons: []string{"no usable GPU was found", "nothing fits"}})
	if !strings.HasSuffix(err.Error(), "nothing fits") {
		t.Errorf("%v", err)
	}
}

func TestSpecsCarryWhatTheSurveyChose(t *testing.T) {
	got := specs([]capability.Choice{{Model: "m", Engine: "llama-server", Path: "/m.gguf", Context: 4096, KVType: "q8_0", NeedBytes: 7, Devices: []string{"GPU-1"}}}, &request.Enable{Slots: 3})
	want := lifecycle.Spec{Engine: "llama-server", Model: "m", Path: "/m.gguf", Context: 4096, KVType: "q8_0", Slots: 3, Devices: []string{"GPU-1"}, Need: 7}
	if len(got) != 1 || got[0].Model != want.Model || got[0].Slots != 3 || got[0].Need != 7 || got[0].KVType != "q8_0" || !slices.Equal(got[0].Devices, want.Devices) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
