// Package repotest holds the rules of this repository as tests: who may import whom, one comment a package, short
// files, no host of a package registry. It has no code of its own.
package repotest
