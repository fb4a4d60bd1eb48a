package logfile

import "errors"

func restrict() error { return nil }

func mkfifo(string) error { return errors.New("there are no pipes in folders here") }
