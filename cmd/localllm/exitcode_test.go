package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"localllm/delegate"
	"localllm/internal/app"
	"localllm/internal/request"
	"localllm/lifecycle"
)

// The exit codes are public, and some of these errors need an engine that fails at the right moment.
func TestExitCodes(t *testing.T) {
	for want, errs := range map[int][]error{
		exitUsage:      {&usageError{errors.New("x")}, &request.Error{}, &app.InvalidError{}, &app.ConfigError{Err: errors.New("x")}, &delegate.FieldError{}, &app.TaskError{Exit: exitUsage}},
		exitNotDone:    {&notDone{delegate.Failed}},
		exitCannot:     {app.ErrCannotEnable, &lifecycle.StartError{Cause: lifecycle.NoSuchModel}},
		exitEngine:     {&lifecycle.StartError{}, &delegate.EngineError{Err: errors.New("the engine went away")}},
		exitNotEnabled: {app.ErrNotEnabled},
		exitBusy:       {&lifecycle.BusyError{}},
		exitInterrupt:  {context.Canceled},
		exitUnexpected: {errors.New("x"), &app.TaskError{}},
	} {
		for _, err := range errs {
			if got := exitCode(fmt.Errorf("wrapped: %w", err)); got != want {
				t.Errorf("%T: exit code %d, want %d", err, got, want)
			}
		}
	}
}
