package chromium

import "os/exec"

func inOwnGroup(*exec.Cmd) {}

func endGroup(*exec.Cmd) {}
