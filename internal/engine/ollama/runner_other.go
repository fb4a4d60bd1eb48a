//go:build !linux

package ollama

// runnerPort is not known here: other processes' command lines can't be read without a program's help.
func runnerPort(string) (string, bool) { return "", false }
