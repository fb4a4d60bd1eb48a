// Package hint carries what the user can do next along with an error. It never prints: only the doors do.
package hint

import (
	"errors"
)

type hinted struct {
	err   error
	hints []string
}

func (h *hinted) Error() string { return h.err.Error() }
func (h *hinted) Unwrap() error { return h.err }

// Add attaches hints, one action each, to err. It returns nil for a nil err.
func Add(err error, hints ...string) error {
	if err == nil {
		return nil
	}
	return &hinted{err: err, hints: hints}
}

// New is an error with its hints in one call.
func New(message string, hints ...string) error {
	return Add(errors.New(message), hints...)
}

// Of lists every hint (added here, or told by an error's own Hints method) in err's tree, outermost first, each once.
func Of(err error) []string {
	var found []string
	seen := map[string]bool{}
	collect(err, func(s string) {
		if !seen[s] {
			seen[s] = true
			found = append(found, s)
		}
	})
	return found
}

func collect(err error, yield func(string)) {
	if err == nil {
		return
	}
	if h, ok := err.(*hinted); ok {
		for _, s := range h.hints {
			yield(s)
		}
	}
	if h, ok := err.(interface{ Hints() []string }); ok {
		for _, s := range h.Hints() {
			yield(s)
		}
	}
	switch u := err.(type) {
	case interface{ Unwrap() error }:
		collect(u.Unwrap(), yield)
	case interface{ Unwrap() []error }:
		for _, e := range u.Unwrap() {
			collect(e, yield)
		}
	}
}
