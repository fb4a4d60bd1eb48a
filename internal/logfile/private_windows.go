package logfile

import "os"

// Windows shows every file as 0666; who may read it is the folder's business there.
func private(*os.File) error { return nil }
