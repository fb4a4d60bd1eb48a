package stats

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseSince reads «7d», «36h», «2w», a date or a full time. An empty text is the beginning of time.
func ParseSince(text string, now time.Time) (time.Time, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	unit := map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}[text[len(text)-1]]
	n, err := strconv.Atoi(text[:len(text)-1])
	if err != nil || unit == 0 || n < 0 || n > 100_000 {
		return time.Time{}, fmt.Errorf("since %q: give a span like 7d or 36h, or a date like 2026-01-31", text)
	}
	return now.Add(-time.Duration(n) * unit), nil
}

// ParseBy reads a grouping.
func ParseBy(text string) (By, error) {
	switch by := By(text); by {
	case "":
		return ByTaskType, nil
	case ByTaskType, ByModel, ByDay, ByStatus:
		return by, nil
	}
	return "", fmt.Errorf("by %q: give task_type, model, day or status", text)
}
