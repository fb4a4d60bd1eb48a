//go:build linux

package keeper_test

import (
	"testing"

	"localllm/test/chaos/lab"
)

func TestMain(m *testing.M) { lab.Main(m) }
