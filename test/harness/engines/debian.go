package engines

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The release that is new enough for the tests; its builds move, so assert checks what came.
const suite = "sid"

// bundle is programs that come from Debian packages where the machine lacks them.
type bundle struct {
	place    string // the folder that the packages are unpacked to
	packages []string
	byHand   string // what somebody can do where it can't be had
}

var llama = bundle{
	place: "debian", packages: []string{"llama.cpp-tools", "llama.cpp-tools-extra"},
	byHand: "put llama-server and llama-fit-params (llama.cpp) on PATH",
}

func provideLlama(ctx context.Context, folder string, say func(string)) error {
	if fromPath(ctx, folder, "llama-server") && fromPath(ctx, folder, "llama-fit-params") {
		say("llama-server and llama-fit-params are on PATH")
		return nil
	}
	if _, err := os.Stat(filepath.Join(folder, "debian")); err == nil && wrap(folder) == nil && wrapped(ctx, folder) {
		return nil
	}
	if err := llama.fetch(ctx, folder, say); err != nil {
		return err
	}
	return wrap(folder)
}

// fetch leaves the packages' files in the bundle's place below folder.
func (b bundle) fetch(ctx context.Context, folder string, say func(string)) error {
	for _, tool := range []string{"apt-get", "apt-config", "dpkg"} {
		if _, err := exec.LookPath(tool); err != nil {
			return errors.New(b.byHand + " through your package manager, since only on Debian they are taken from packages")
		}
	}
	keyring := debianKeyring()
	if keyring == "" {
		return errors.New("install debian-archive-keyring, or " + b.byHand + ": packages are not taken unverified")
	}
	archives, err := debianArchives(ctx)
	if err != nil {
		return err
	}
	if len(archives) == 0 {
		return errors.New("apt's sources name no Debian archive, so " + b.byHand)
	}
	var failures []string
	for _, archive := range archives {
		err := b.unpack(ctx, folder, archive, keyring, say)
		if err == nil {
			return nil
		}
		failures = append(failures, fmt.Sprintf("%s: %v", strings.TrimSuffix(archive, "/"), err))
	}
	return fmt.Errorf("could not get %s of Debian %s (%s)", strings.Join(b.packages, " and "), suite, strings.Join(failures, "; "))
}

// wrapped reports whether what an earlier run unpacked does.
func wrapped(ctx context.Context, folder string) bool {
	_, server := usable(ctx, filepath.Join(folder, "bin", "llama-server"))
	_, fit := usable(ctx, filepath.Join(folder, "bin", "llama-fit-params"))
	return server == nil && fit == nil
}

func debianKeyring() string {
	for _, ending := range []string{"pgp", "gpg"} {
		path := "/usr/share/keyrings/debian-archive-keyring." + ending
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

// debianArchives asks apt itself, whichever way its sources are written, where this machine takes a Debian release's main component from.
func debianArchives(ctx context.Context) ([]string, error) {
	text, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(ORIGIN)", "Created-By: Packages").Output()
	if err != nil {
		return nil, fmt.Errorf("asking apt for its sources: %w", err)
	}
	codename := ""
	if release, err := os.ReadFile("/etc/os-release"); err == nil {
		for line := range strings.Lines(string(release)) {
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), "VERSION_CODENAME="); ok {
				codename = strings.Trim(name, `"`)
			}
		}
	}
	return pickArchives(string(text), codename), nil
}

// pickArchives keeps the archives that serve a whole Debian release: those known to be Debian's first, and those not yet updated (no origin) after them.
func pickArchives(targets, codename string) []string {
	releases := map[string]bool{codename: codename != "", "stable": true, "testing": true, "unstable": true, "sid": true, "oldstable": true}
	var known, unknown []string
	seen := map[string]bool{}
	for line := range strings.Lines(targets) {
		field := strings.Split(strings.TrimSpace(line), "|")
		if len(field) != 4 || !releases[field[1]] || field[2] != "main" || seen[field[0]] {
			continue
		}
		seen[field[0]] = true
		switch field[3] {
		case "Debian":
			known = append(known, field[0])
		case "", "$(ORIGIN)": // apt leaves the variable as it is when its lists are empty
			unknown = append(unknown, field[0])
		}
	}
	return append(known, unknown...)
}

// unpack lets a private apt resolve and verify the packages.
func (b bundle) unpack(ctx context.Context, folder, archive, keyring string, say func(string)) error {
	work, err := os.MkdirTemp(folder, "apt-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	config, err := privateApt(ctx, work, archive, keyring)
	if err != nil {
		return err
	}
	say("asking apt for " + strings.Join(b.packages, " and ") + " of Debian " + suite)
	if err := apt(ctx, config, "update"); err != nil {
		return err
	}
	if err := apt(ctx, config, append([]string{"install", "--yes", "--download-only"}, b.packages...)...); err != nil {
		return err
	}
	debs, err := filepath.Glob(filepath.Join(work, "cache", "archives", "*.deb"))
	if err != nil {
		return err
	}
	if len(debs) == 0 {
		return errors.New("apt downloaded nothing")
	}
	say(fmt.Sprintf("unpacking %d packages into a private folder", len(debs)))
	tree := filepath.Join(work, "tree")
	for _, deb := range debs {
		if text, err := exec.CommandContext(ctx, "dpkg", "-x", deb, tree).CombinedOutput(); err != nil {
			return fmt.Errorf("unpacking %s: %w: %s", filepath.Base(deb), err, lastLine(string(text)))
		}
	}
	place := filepath.Join(folder, b.place)
	if err := os.RemoveAll(place); err != nil {
		return err
	}
	return os.Rename(tree, place)
}

// privateApt writes a configuration whose state, cache and sources are all in work, with an empty status, so that apt
// resolves down to libc. Of the machine's own settings only those on fetching (proxies, mirrors' quirks) are kept.
func privateApt(ctx context.Context, work, archive, keyring string) (config string, err error) {
	for _, dir := range []string{"lists/partial", "cache/archives/partial", "etc"} {
		if err := os.MkdirAll(filepath.Join(work, dir), 0o755); err != nil {
			return "", err
		}
	}
	fetching, err := exec.CommandContext(ctx, "apt-config", "dump", "Acquire").Output()
	if err != nil {
		return "", fmt.Errorf("reading apt's settings: %w", err)
	}
	source := fmt.Sprintf("Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nTargets: Packages\nSigned-By: %s\n", archive, suite, keyring)
	settings := string(fetching) + fmt.Sprintf(`
Dir::State %q;
Dir::State::lists %q;
Dir::State::status %q;
Dir::Cache %q;
Dir::Etc::sourcelist %q;
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::Etc::main "/dev/null";
Dir::Etc::parts "/dev/null";
APT::Install-Recommends "false";
APT::Install-Suggests "false";
APT::Sandbox::User "";
APT::Update::Error-Mode "any";
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::http::Timeout "20";
`, work, filepath.Join(work, "lists"), filepath.Join(work, "status"), filepath.Join(work, "cache"), filepath.Join(work, "etc", "sid.sources"))
	config = filepath.Join(work, "apt.conf")
	for path, text := range map[string]string{
		config:                                 settings,
		filepath.Join(work, "status"):          "",
		filepath.Join(work, "etc/sid.sources"): source,
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	return config, nil
}

func apt(ctx context.Context, config string, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-q"}, args...)...)
	cmd.Env = append(os.Environ(), "APT_CONFIG="+config, "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	text, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.New(aptSays(string(text)))
}

// aptSays is the first complaint of apt; the later ones follow from it.
func aptSays(text string) string {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		for _, mark := range []string{"E: ", "W: "} {
			if said, ok := strings.CutPrefix(line, mark); ok {
				return strings.Join(strings.Fields(said), " ")
			}
		}
	}
	return lastLine(text)
}
