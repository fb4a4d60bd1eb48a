// Package practice writes small GGUF models whose answers are scripted, so that tests can run real engines without a
// real model. It never runs an engine, and it understands nothing: it answers by the markers that a prompt holds.
package practice

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// The most that a model has room for.
const (
	MaxMarkers = 48
	MaxEntries = 48
	MaxText    = 64 << 10 // bytes of all answers together
	maxMarker  = 1 << 10  // bytes of one marker
)

// Entry is one scripted answer.
type Entry struct {
	// When are the markers that must all occur in the prompt. None makes the entry the default.
	When []string `json:"when"`
	Say  string   `json:"say"`
}

// Script is a list of answers. Of the entries whose markers all occur, the one with the most markers answers, and of
// those the first. Without such an entry the answer is empty.
type Script []Entry

// EntryError says which entry of a script is wrong, counted from 1.
type EntryError struct {
	Number int
	Err    error
}

func (e *EntryError) Error() string { return fmt.Sprintf("script: entry %d: %v", e.Number, e.Err) }
func (e *EntryError) Unwrap() error { return e.Err }

// Parse reads a script from JSON and checks it.
func Parse(text []byte) (Script, error) {
	var script Script
	decoder := json.NewDecoder(bytes.NewReader(text))
	if open, err := decoder.Token(); err != nil || open != json.Delim('[') {
		return nil, &EntryError{1, errors.New("a script is a JSON list of {\"when\": [MARKER, …], \"say\": TEXT}")}
	}
	for decoder.More() {
		number := len(script) + 1
		entry, err := parseEntry(decoder)
		if err != nil {
			return nil, &EntryError{number, err}
		}
		script = append(script, entry)
	}
	if _, err := decoder.Token(); err != nil {
		return nil, &EntryError{len(script), fmt.Errorf("after it the list should go on or end: %w", plain(err))}
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, &EntryError{len(script), errors.New("the text goes on after the end of the list")}
	}
	if err := script.Check(); err != nil {
		return nil, err
	}
	return script, nil
}

func parseEntry(decoder *json.Decoder) (Entry, error) {
	var raw json.RawMessage
	if err := decoder.Decode(&raw); err != nil {
		return Entry{}, plain(err)
	}
	if !utf8.Valid(raw) {
		return Entry{}, errors.New("not UTF-8")
	}
	var fields struct {
		When []string `json:"when"`
		Say  *string  `json:"say"`
	}
	strict := json.NewDecoder(bytes.NewReader(raw))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&fields); err != nil {
		return Entry{}, plain(err)
	}
	if fields.Say == nil {
		return Entry{}, errors.New("\"say\" is missing")
	}
	return Entry{When: fields.When, Say: *fields.Say}, nil
}

// plain keeps a decoder's message to one line without its package's name.
func plain(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the text ends too early")
	}
	return errors.New(strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\n", " "), "json: "))
}

// Check finds what a model of this script could not keep. Its error is an *EntryError.
func (s Script) Check() error {
	if len(s) == 0 {
		return &EntryError{1, errors.New("the script has no entry")}
	}
	sets := map[string]int{}
	first := map[string]int{}
	var size int
	for i, entry := range s {
		number := i + 1
		if number > MaxEntries {
			return &EntryError{number, fmt.Errorf("more than %d entries", MaxEntries)}
		}
		if size += len(entry.Say); size > MaxText {
			return &EntryError{number, fmt.Errorf("too long: with it the answers have more than %d bytes", MaxText)}
		}
		if err := checkEntry(entry, number, first); err != nil {
			return &EntryError{number, err}
		}
		set := strings.Join(entry.markers(), "\x00")
		if earlier, ok := sets[set]; ok {
			return &EntryError{number, fmt.Errorf("the same markers as entry %d", earlier)}
		}
		sets[set] = number
	}
	return nil
}

func checkEntry(entry Entry, number int, first map[string]int) error {
	if !utf8.ValidString(entry.Say) {
		return errors.New("its answer is not UTF-8")
	}
	for _, marker := range entry.markers() {
		switch {
		case marker == "":
			return errors.New("an empty marker")
		case len(marker) > maxMarker:
			return fmt.Errorf("a marker of more than %d bytes", maxMarker)
		case !utf8.ValidString(marker) || strings.ContainsRune(marker, 0):
			return fmt.Errorf("the marker %q is not plain UTF-8", marker)
		}
		for _, role := range controls {
			if strings.Contains(marker, role) {
				return fmt.Errorf("the marker %q holds %s, which begins or ends a turn", marker, role)
			}
		}
		if _, ok := first[marker]; ok {
			continue
		}
		for other, earlier := range first {
			if strings.Contains(marker, other) || strings.Contains(other, marker) {
				return fmt.Errorf("of its marker %q and %q of entry %d one is inside the other", marker, other, earlier)
			}
		}
		if first[marker] = number; len(first) > MaxMarkers {
			return fmt.Errorf("more than %d markers", MaxMarkers)
		}
	}
	return nil
}

// markers is When sorted, each once.
func (e Entry) markers() []string {
	sorted := slices.Sorted(slices.Values(e.When))
	return slices.Compact(sorted)
}
