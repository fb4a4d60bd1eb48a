// Package enginetest is the suite that every engine adapter passes. It drives real engines, and plays the faults
// that a real engine won't produce on demand; it is for tests alone.
package enginetest
