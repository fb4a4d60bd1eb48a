package mcpserver

import "os"

// takeStdout keeps Go code away from the standard output; children get none unless they are given one.
func takeStdout() (*os.File, error) {
	out := os.Stdout
	os.Stdout = os.Stderr
	return out, nil
}
