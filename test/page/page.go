// Package page puts generated text into a document that people write too. It changes nothing outside of the text's marks.
package page

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"localllm/internal/atomicfile"
)

// Put replaces what stands between the marks of that name in the document at path. One without them, or that is not
// there yet, gets them at its end.
func Put(path, name, text string) error {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	document, err := place(string(old), name, text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return atomicfile.Write(path, []byte(document), 0o644)
}

func place(document, name, text string) (string, error) {
	begin, end := "<!-- generated:"+name+" -->", "<!-- /generated:"+name+" -->"
	part := begin + "\n" + text + end
	before, rest, ok := strings.Cut(document, begin)
	if !ok {
		return strings.TrimLeft(strings.TrimRight(document, "\n")+"\n\n"+part+"\n", "\n"), nil
	}
	_, after, ok := strings.Cut(rest, end)
	if !ok {
		return "", fmt.Errorf("it has %s and no %s", begin, end)
	}
	return before + part + after, nil
}
