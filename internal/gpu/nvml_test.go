//go:build linux && cgo

package gpu

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"localllm/capability"
)

// helperVariable makes the test's own binary probe and print: a process can bind one NVML library only.
const helperVariable = "LOCALLLM_TEST_PROBE_LIBRARY"

func TestMain(m *testing.M) {
	if library, ok := os.LookupEnv(helperVariable); ok {
		finder := Finder{Nvidia: []capability.Prober{newNVML(library), &smi{}}}
		if err := json.NewEncoder(os.Stdout).Encode(finder.Find(context.Background())); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// stub compiles the library.
func stub(t *testing.T, defines ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	args := append([]string{"-shared", "-fPIC", "-O1", "-o", out, "testdata/nvml/stub.c"}, defines...)
	if text, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, text)
	}
	return out
}

func probe(t *testing.T, library string) Found {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), helperVariable+"="+library)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("probing with %s: %v", library, err)
	}
	var found Found
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	return found
}

const gib = int64(1) << 30

func TestOneCardOf24With22Free(t *testing.T) {
	found := probe(t, stub(t))
	if len(found.GPUs) != 1 || len(found.Notes) != 0 {
		t.Fatalf("found %+v", found)
	}
	g := found.GPUs[0]
	if *g.TotalBytes != 24564<<20 || *g.FreeBytes != 22*gib {
		t.Errorf("memory %d free of %d", *g.FreeBytes, *g.TotalBytes)
	}
	if g.UUID != "GPU-00000000" || g.Name != "Stub 0" || g.ComputeCapability != "8.9" || g.Driver != "570.00" ||
		g.Source != "nvml" || g.MemoryKind != capability.Dedicated || g.Display {
		t.Errorf("device %+v", g)
	}
	if len(g.Processes) != 2 {
		t.Fatalf("a process that computes and draws is listed once: %+v", g.Processes)
	}
	if p := g.Processes[0]; p.PID != 4000000 || *p.UsedBytes != 1536<<20 || p.Name != "" {
		t.Errorf("holder %+v", p)
	}
	if p := g.Processes[1]; p.UsedBytes != nil {
		t.Errorf("all ones is no size, got %d", *p.UsedBytes)
	}
}

func TestTwoUnequalCardsAndTheOneWithAScreen(t *testing.T) {
	found := probe(t, stub(t, "-DCOUNT=2", "-DTOTAL(i)=((i?12:24)*GIB)", "-DFREE(i)=((i?10:3)*GIB)"))
	if len(found.GPUs) != 2 {
		t.Fatalf("found %+v", found)
	}
	if *found.GPUs[0].FreeBytes != 3*gib || *found.GPUs[1].FreeBytes != 10*gib {
		t.Errorf("free memory mixed up: %+v", found.GPUs)
	}
	if found.GPUs[0].Display || !found.GPUs[1].Display {
		t.Errorf("the screen hangs on the second card")
	}
}

func TestSlicesStandForADividedCard(t *testing.T) {
	found := probe(t, stub(t, "-DMIG", "-DSLICES=2"))
	if len(found.GPUs) != 2 {
		t.Fatalf("want the two slices and not the card, got %+v", found.GPUs)
	}
	for i, g := range found.GPUs {
		if g.MemoryKind != capability.MIG || g.ParentUUID != "GPU-00000000" || g.UUID != fmt.Sprintf("MIG-%08d", 100+i) ||
			*g.TotalBytes != 20*gib || *g.FreeBytes != 19*gib {
			t.Errorf("slice %+v", g)
		}
	}
	if found := probe(t, stub(t, "-DMIG")); len(found.GPUs) != 0 || len(found.Notes) != 1 {
		t.Errorf("a divided card without slices can run nothing, and that is said: %+v", found)
	}
}

func TestMemoryNotSupportedIsUnifiedAndUnknown(t *testing.T) {
	found := probe(t, stub(t, "-DUNIFIED"))
	if len(found.GPUs) != 1 {
		t.Fatalf("found %+v", found)
	}
	if g := found.GPUs[0]; g.MemoryKind != capability.Unified || g.TotalBytes != nil || g.FreeBytes != nil {
		t.Errorf("no figure may be invented: %+v", g)
	}
}

// Calling a function that an old library lacks would end the process with a symbol lookup error.
func TestAnOldLibraryThatLacksNewerFunctions(t *testing.T) {
	found := probe(t, stub(t, "-DOLD"))
	if len(found.GPUs) != 1 || *found.GPUs[0].FreeBytes != 22*gib {
		t.Fatalf("found %+v", found)
	}
	if g := found.GPUs[0]; g.Driver != "" || g.ComputeCapability != "" || len(g.Processes) != 0 {
		t.Errorf("unknown is unknown: %+v", g)
	}
}

func TestALibraryThatFailsAtTheStart(t *testing.T) {
	found := probe(t, stub(t, "-DFAIL"))
	if len(found.GPUs) != 0 || len(found.Notes) != 1 || !strings.Contains(found.Notes[0], "Driver Not Loaded") {
		t.Errorf("found %+v", found)
	}
}

func TestACallThatHangsIsGivenTwoSeconds(t *testing.T) {
	found := probe(t, stub(t, "-DHANG"))
	if len(found.GPUs) != 0 || len(found.Notes) != 1 || !strings.Contains(found.Notes[0], "did not answer within 2s") {
		t.Errorf("found %+v", found)
	}
	if found.Elapsed < HangLimit || found.Elapsed > 10*time.Second {
		t.Errorf("gave up after %v", found.Elapsed)
	}
}

func TestEightCards(t *testing.T) {
	found := probe(t, stub(t, "-DCOUNT=8", "-DTOTAL(i)=(80*GIB)", "-DFREE(i)=((70+i)*GIB)"))
	if len(found.GPUs) != 8 {
		t.Fatalf("found %d", len(found.GPUs))
	}
	for i, g := range found.GPUs {
		if g.Index != i || *g.FreeBytes != int64(70+i)*gib {
			t.Errorf("card %d: %+v", i, g)
		}
	}
}

func TestNoLibraryAtAllIsNoError(t *testing.T) {
	found := probe(t, "")
	if len(found.GPUs) != 0 || len(found.Notes) != 0 {
		t.Errorf("found %+v", found)
	}
	if found := probe(t, filepath.Join(t.TempDir(), "none.so")); len(found.Notes) != 1 {
		t.Errorf("a library that the user named and that is not there is worth a word: %+v", found)
	}
}
