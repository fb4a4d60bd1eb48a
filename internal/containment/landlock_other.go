//go:build !linux

package containment

import (
	"context"
	"errors"
)

func landlocked(context.Context, string) (Box, bool) { return Box{}, false }

// become is the hidden command, which only Linux has.
func become([]string) error {
	return errors.New("containing a command: this system has no Landlock")
}
