package setup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/shirou/gopsutil/v3/disk"

	"localllm/internal/atomicfile"
	"localllm/internal/engine/program"
	"localllm/internal/filelock"
	"localllm/internal/hint"
	"localllm/internal/paths"
	"localllm/lifecycle"
)

// install downloads, checks and unpacks a release, and records it last: without the record nothing finds it.
func (o Options) install(ctx context.Context, p Plan) (string, error) {
	if err := paths.Private(o.Folder); err != nil {
		return "", err
	}
	lock, err := filelock.Take(ctx, filepath.Join(o.Folder, "setup.lock"))
	if err != nil {
		return "", fmt.Errorf("waiting for another setup: %w", err)
	}
	defer lock.Release()
	var there program.Installed
	if atomicfile.ReadJSON(program.Record(o.Folder), &there) == nil && there.SHA256 == p.SHA256 {
		if _, err := os.Stat(there.Path); err == nil {
			return there.Path, nil
		}
	}
	archive := filepath.Join(o.Folder, "download", p.File)
	if err := o.room(p); err != nil {
		return "", err
	}
	if err := o.download(ctx, p, archive); err != nil {
		return "", err
	}
	o.Report(lifecycle.Progress{Phase: "unpacking", Detail: p.File})
	fresh := p.Into + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return "", fmt.Errorf("clearing %s: %w", fresh, err)
	}
	if err := unpack(ctx, archive, fresh); err != nil {
		_ = os.RemoveAll(fresh)
		return "", fmt.Errorf("unpacking %s: %w", p.File, err)
	}
	inside, err := find(fresh, o.Engine, o.System)
	if err == nil {
		err = o.tries(ctx, filepath.Join(fresh, inside))
	}
	if err != nil {
		_ = os.RemoveAll(fresh)
		return "", err
	}
	if err := errors.Join(os.RemoveAll(p.Into), os.Rename(fresh, p.Into)); err != nil {
		return "", fmt.Errorf("putting %s in its place: %w", o.Engine, err)
	}
	record := program.Installed{Engine: o.Engine, Version: p.Version, Path: filepath.Join(p.Into, inside), SHA256: p.SHA256, Source: p.URL}
	if err := atomicfile.WriteJSON(program.Record(o.Folder), record); err != nil {
		return "", err
	}
	_ = os.RemoveAll(filepath.Dir(archive))
	o.clear(p.Version)
	return record.Path, nil
}

// room refuses a download that the disk can't take: the archive, and about three times that unpacked.
func (o Options) room(p Plan) error {
	usage, err := disk.Usage(o.Folder)
	if err != nil {
		return nil // then the write itself will tell
	}
	if need := uint64(p.Bytes) * 4; usage.Free < need {
		return hint.New(fmt.Sprintf("%s needs %s of disk in %s, and %s are free", o.Engine, size(int64(need)), o.Folder, size(int64(usage.Free))), "make room and try again")
	}
	return nil
}

// tries runs the new program once: an archive for another C library unpacks well and never starts.
func (o Options) tries(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if text, err := o.Run(ctx, []string{path, "--version"}); err != nil {
		return hint.Add(fmt.Errorf("the %s of this release does not run here: %w", o.Engine, withTail(err, text)), "install it as its own project says for this system")
	}
	return nil
}

// clear removes the releases before this one.
func (o Options) clear(version string) {
	entries, _ := os.ReadDir(o.Folder)
	for _, e := range entries {
		if e.IsDir() && e.Name() != version {
			_ = os.RemoveAll(filepath.Join(o.Folder, e.Name()))
		}
	}
}

// find is the engine's program inside an unpacked release.
func find(folder, engine, system string) (string, error) {
	name := engine
	if system == "windows" {
		name += ".exe"
	}
	found := ""
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		// Ollama carries a llama-server of its own, deeper: the highest one is meant.
		if d.Name() == name && d.Type().IsRegular() {
			inside, _ := filepath.Rel(folder, path)
			if found == "" || strings.Count(inside, string(filepath.Separator)) < strings.Count(found, string(filepath.Separator)) {
				found = inside
			}
		}
		return nil
	})
	if err == nil && found == "" {
		err = fmt.Errorf("the archive holds no %s", name)
	}
	return found, err
}

// download gets the archive and goes on where an earlier try stopped. A file with a wrong sum is deleted.
func (o Options) download(ctx context.Context, p Plan, archive string) error {
	if err := paths.Private(filepath.Dir(archive)); err != nil {
		return err
	}
	if check(archive, p.SHA256) == nil {
		return nil
	}
	part := archive + "." + p.SHA256[:12] + ".part"
	for attempt := 1; ; attempt++ {
		err := o.receive(ctx, p, part)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if attempt == 3 || !errors.Is(err, errBroken) {
			return hint.Add(fmt.Errorf("downloading %s: %w", p.File, err), "try again: what has arrived is kept")
		}
	}
	if err := check(part, p.SHA256); err != nil {
		_ = os.Remove(part)
		return hint.Add(fmt.Errorf("downloading %s: %w", p.File, err), "try again; if it happens twice, do not use this source")
	}
	return os.Rename(part, archive)
}

var errBroken = errors.New("the connection broke")

func (o Options) receive(ctx context.Context, p Plan, part string) error {
	f, err := os.OpenFile(part, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	have, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if have > p.Bytes {
		have = 0
	}
	if have == p.Bytes {
		return nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL, nil)
	if err != nil {
		return err
	}
	if have > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
	}
	resp, err := o.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusOK:
		have = 0
	case resp.StatusCode != http.StatusPartialContent || have == 0 || !strings.HasPrefix(resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", have)):
		return fmt.Errorf("HTTP status %d", resp.StatusCode)
	}
	if err := errors.Join(f.Truncate(have), seek(f, have)); err != nil {
		return err
	}
	counted := &progress{to: f, done: have, total: p.Bytes, report: o.Report, detail: p.File}
	// One byte more than announced is already wrong.
	n, err := io.Copy(counted, io.LimitReader(resp.Body, p.Bytes-have+1))
	switch {
	case err != nil && counted.failed != nil:
		return counted.failed
	case err != nil || have+n < p.Bytes:
		return errBroken
	case have+n > p.Bytes:
		return fmt.Errorf("it is longer than the %d bytes that were announced", p.Bytes)
	}
	return nil
}

func seek(f *os.File, to int64) error {
	_, err := f.Seek(to, io.SeekStart)
	return err
}

type progress struct {
	to          io.Writer
	done, total int64
	report      func(lifecycle.Progress)
	detail      string
	said        time.Time
	failed      error // of the disk, not of the network
}

func (p *progress) Write(b []byte) (int, error) {
	n, err := p.to.Write(b)
	p.done += int64(n)
	p.failed = err
	if time.Since(p.said) > 200*time.Millisecond || p.done >= p.total {
		p.said = time.Now()
		p.report(lifecycle.Progress{Phase: "downloading", Done: p.done, Total: p.total, Unit: "bytes", Detail: p.detail})
	}
	return n, err
}

// check compares a file's SHA-256 with the published one.
func check(path, want string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		return fmt.Errorf("its SHA-256 is %s, published is %s", got, want)
	}
	return nil
}
