package remote

import (
	"errors"
	"net/http"
	"slices"
)

// Adapt calls ask until it succeeds, or fails for something that can't be helped. named finds in a refusal's message what
// requests can do without, the likeliest first: that is given up for good, each at most once, so that it ends. ask makes
// its request anew each time, by what is given up then.
func (c *Client) Adapt(ask func() error, named func(message string) []string) error {
	for {
		before := c.allGivenUp()
		err := ask()
		var e *Error
		if !errors.As(err, &e) || (e.Status != http.StatusBadRequest && e.Status != http.StatusUnprocessableEntity) {
			return err
		}
		fields := named(e.Message)
		// Another request may have given it up while this one was under way with it: that is worth another try too.
		at := slices.IndexFunc(fields, func(field string) bool { return !slices.Contains(before, field) })
		if at < 0 {
			return err
		}
		c.GiveUp(fields[at])
	}
}

// GiveUp notes that this server will not have something.
func (c *Client) GiveUp(field string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.givenUp, field) {
		c.givenUp = append(c.givenUp, field)
	}
}

// GivenUp reports whether that was noted.
func (c *Client) GivenUp(field string) bool { return slices.Contains(c.allGivenUp(), field) }

func (c *Client) allGivenUp() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.givenUp)
}
