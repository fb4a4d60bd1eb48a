//go:build race

package workspace_test

// raceEnabled: the race detector slows everything down several times, so that limits of time say nothing.
const raceEnabled = true
