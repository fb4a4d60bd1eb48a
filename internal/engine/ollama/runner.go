package ollama

import "strconv"

// portOf reads a runner's command line: its port, if it runs this model file.
func portOf(args [][]byte, blob string) (string, bool) {
	var port string
	model := false
	for i := 0; i+1 < len(args); i++ {
		switch string(args[i]) {
		case "--model":
			model = string(args[i+1]) == blob
		case "--port":
			port = string(args[i+1])
		}
	}
	n, err := strconv.Atoi(port)
	return port, model && err == nil && n > 0 && n < 1<<16
}
