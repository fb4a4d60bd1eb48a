//go:build !linux && !darwin

package keeper

func suspended(int) bool { return false }

func networkSystem(string) string { return "" }
