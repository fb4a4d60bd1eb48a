//go:build !race && linux

package keeper_test

const raceDetector = false
