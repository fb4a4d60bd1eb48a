package paths

import (
	"os"
	"path/filepath"
	"testing"
)

func TestHomeVariableMovesEverything(t *testing.T) {
	home := t.TempDir()
	t.Setenv(HomeVariable, home)
	got, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	want := Layout{Run: filepath.Join(home, "run"), State: filepath.Join(home, "state"), Config: filepath.Join(home, "config.toml")}
	if got != want {
		t.Errorf("Find = %+v, want %+v", got, want)
	}
}

// Clients pass different environments; were the lock folder to follow them, each would start its own engine.
func TestRunFolderIgnoresTheEnvironment(t *testing.T) {
	t.Setenv(HomeVariable, "")
	before, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", "/nowhere")
	t.Setenv("XDG_STATE_HOME", "/elsewhere")
	t.Setenv("XDG_RUNTIME_DIR", "/elsewhere")
	t.Setenv("XDG_CONFIG_HOME", "/config")
	after, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	if before.Run != after.Run || before.State != after.State {
		t.Errorf("run and state moved with the environment: %+v then %+v", before, after)
	}
	if after.Config != filepath.Join("/config", "localllm", "config.toml") {
		t.Errorf("config = %s", after.Config)
	}
}

func TestPrivateFolderIsForTheUserAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := Private(dir); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v", info.Mode())
	}
}
