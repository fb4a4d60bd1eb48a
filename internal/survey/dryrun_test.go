package survey

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"localllm/capability"
	"localllm/test/harness"
)

func TestTheRealDryRun(t *testing.T) {
	paths := harness.Engines(t)
	t.Setenv("LOCALLLM_LLAMA_SERVER", paths.LlamaServer)
	file := place(t, shape(t, "Gemma 3 12B"), filepath.Join(t.TempDir(), "gemma.gguf"))
	plan, err := DryRun(context.Background(), capability.Choice{Path: file, Context: 8192, KVType: "f16", Slots: 4})
	if err != nil || len(plan) == 0 {
		t.Fatalf("%+v, %v", plan, err)
	}
	facts := factsOf(file)
	need := facts.Shape.Estimate(capability.Setting{Context: 8192, KVType: "f16", Slots: 4})
	// The tool prints whole MiB.
	if p := plan[0]; p.Device != "Host" || p.Total() <= p.WeightsBytes || need.KVBytes>>20 != p.ContextBytes>>20 || need.WeightsBytes>>20 != p.WeightsBytes>>20 {
		t.Errorf("the dry run says %+v, the formula %+v", p, need)
	}
	if _, err := DryRun(context.Background(), capability.Choice{Model: "qwen3:8b", Context: 1}); !errors.Is(err, capability.ErrAbsent) {
		t.Errorf("without a file there is nothing to ask about: %v", err)
	}
	broken := filepath.Join(t.TempDir(), "broken.gguf")
	if err := os.WriteFile(broken, []byte("GGUF"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := DryRun(context.Background(), capability.Choice{Path: broken, Context: 4096, KVType: "f16"}); err == nil {
		t.Error("a broken file has a plan")
	}
}

func TestPlansOfSeveralDevices(t *testing.T) {
	plan, err := parsePlan("some log line of words\nCUDA0 1000 200 30\nCUDA1 900 100 20\nHost 50 0 10 \n")
	if err != nil || len(plan) != 3 || plan[1].Total() != 1020<<20 || plan[2].Device != "Host" {
		t.Errorf("%+v, %v", plan, err)
	}
	for _, text := range []string{"", "Host a b c", "Host -1 2 3", "Host 99999999999999 1 1"} {
		if plan, err := parsePlan(text); err == nil || !strings.Contains(err.Error(), "no figures") {
			t.Errorf("%q gave %+v, %v", text, plan, err)
		}
	}
}
