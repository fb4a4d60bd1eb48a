// Package survey finds out what this machine has: hardware, engines, models and what they took before. It starts
// nothing, loads nothing and decides nothing: package capability does.
package survey
