// Package e2e holds the tests of the whole program against real engines. It has no code of its own.
package e2e
