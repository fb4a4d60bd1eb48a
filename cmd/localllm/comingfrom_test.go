package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"localllm/internal/config"
)

// Each row of the page about other tools says what a thing is here, and the page knows all that the import reads.
func TestNothingComesWithoutARow(t *testing.T) {
	data, err := os.ReadFile("../../docs/coming-from.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	rows := 0
	for number, line := range strings.Split(page, "\n") {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 3 || strings.TrimSpace(cells[0]) == "" || strings.TrimSpace(cells[2]) == "" {
			t.Errorf("line %d is no whole row: %s", number+1, line)
		}
		rows++
	}
	if rows < 100 {
		t.Errorf("only %d rows were found", rows)
	}
	source, err := os.ReadFile("../../internal/config/takeover.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`"(DELEGATE|AGENT_DELEGATE|SUBAGENT)_[A-Z_]*[A-Z]"`).FindAllString(string(source), -1) {
		if name := strings.Trim(name, `"`); !strings.Contains(page, "`"+name+"`") {
			t.Errorf("%s is taken over, and has no row", name)
		}
	}
	// What a row sends people to must be there.
	known := map[string]bool{}
	eachCommand(newRoot(), func(c *cobra.Command) {
		for path := c.CommandPath(); path != ""; path = path[:max(strings.LastIndex(path, " "), 0)] {
			known[path] = true
		}
	})
	for _, match := range regexp.MustCompile("`(localllm [a-z]+(?: [a-z]+)?)").FindAllStringSubmatch(page, -1) {
		if !known[match[1]] {
			t.Errorf("there is no command «%s»", match[1])
		}
	}
	for _, preset := range []string{"ollama", "lmstudio", "openrouter", "anthropic"} {
		if _, there := config.FindPreset(preset); !there {
			t.Errorf("there is no preset %s", preset)
		}
	}
}
