package journal

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"localllm/internal/treefile"
)

// Undo puts every file back to the byte, with its mode and time, and removes new files and folders. What is not ours
// any more is left as it is and returned, its earlier form copied to Saved. The journal is gone afterwards, unless
// there was an error: then the next localllm tries again.
func (j *Journal) Undo() (conflicts []string, err error) {
	conflicts, err = j.restore()
	if err != nil {
		j.Abandon() // whoever comes next may try again
		return conflicts, err
	}
	j.discard()
	return conflicts, nil
}

func (j *Journal) restore() (conflicts []string, err error) {
	var errs []error
	// New files go first: on a full disk that makes room for the old ones.
	order := slices.Clone(j.entries)
	slices.Reverse(order)
	slices.SortStableFunc(order, func(a, b *entry) int { return rank(a) - rank(b) })
	for _, e := range order {
		theirs, err := j.restoreOne(e)
		if err != nil {
			errs = append(errs, fmt.Errorf("putting %s back: %w", e.Path, err))
		}
		if theirs {
			conflicts = append(conflicts, e.Path)
		}
	}
	for _, dir := range slices.Backward(j.made) {
		_ = j.root.Remove(dir) // one that somebody put something into stays
	}
	slices.Sort(conflicts)
	return conflicts, errors.Join(errs...)
}

func rank(e *entry) int {
	if e.Before.Exists {
		return 1
	}
	return 0
}

// restoreOne puts one file back; theirs means that it is somebody else's now and was left.
func (j *Journal) restoreOne(e *entry) (theirs bool, err error) {
	if e.Temp != "" {
		_ = j.root.Remove(filepath.ToSlash(filepath.Join(filepath.Dir(filepath.FromSlash(e.Path)), e.Temp)))
	}
	if len(e.Ours) == 0 {
		return false, nil // never written
	}
	data, info, err := j.root.Read(e.Path, MaxFile)
	missing := errors.Is(err, fs.ErrNotExist)
	strange := errors.Is(err, treefile.ErrLink) || errors.Is(err, treefile.ErrNotFile) || errors.Is(err, treefile.ErrTooBig)
	if err != nil && !missing && !strange {
		return false, err
	}
	hash := ""
	if err == nil {
		hash = Sum(data)
	}
	was := e.Before
	form := treefile.Form{Mode: was.Mode, Time: time.Unix(0, was.Time), Like: info}
	switch {
	case missing && !was.Exists:
		return false, nil
	case was.Exists && hash == was.Hash:
		return false, j.root.Restamp(e.Path, form)
	case !e.Ours[hash]:
		return true, j.save(e)
	case !was.Exists:
		return false, j.root.Remove(e.Path)
	}
	old, err := j.copyOf(e)
	if err != nil {
		return false, err
	}
	return false, j.root.Replace(e.Path, e.Temp, old, form)
}

func (j *Journal) copyOf(e *entry) ([]byte, error) {
	old, err := os.ReadFile(filepath.Join(j.dir, e.Before.Copy))
	if err == nil && Sum(old) != e.Before.Hash {
		err = errors.New("its copy in the journal is damaged")
	}
	return old, err
}

// save copies the earlier form of a file out of the journal, for its owner to find.
func (j *Journal) save(e *entry) error {
	if !e.Before.Exists {
		return nil
	}
	old, err := j.copyOf(e)
	if err != nil {
		return err
	}
	to := filepath.Join(j.saved, filepath.FromSlash(e.Path))
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.WriteFile(to, old, 0o600)
}

// read fills a journal from the log that a dead process left. A torn last line is what was never done.
func (j *Journal) read(log io.Reader) (*head, error) {
	var h *head
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l line
		if json.Unmarshal(lines.Bytes(), &l) != nil {
			break
		}
		if h == nil && l.Head == nil {
			return nil, errors.New("it does not begin like a journal")
		}
		switch {
		case l.Head != nil:
			h = l.Head
		case l.Was != nil:
			j.add(l.Path, *l.Was)
		case l.Write != "":
			if e := j.byPath[l.Path]; e != nil {
				e.Ours[l.Write], e.Temp = true, filepath.Base(l.Temp)
			}
		case l.Dir != "":
			j.made = append(j.made, l.Dir)
		}
	}
	if h != nil && h.Format != format {
		return nil, fmt.Errorf("it has format %d, this localllm knows %d", h.Format, format)
	}
	return h, lines.Err()
}
