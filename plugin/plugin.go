// Package workflow is the Claude Code plugin and its marketplace folder as they are shipped inside the program. It
// holds files and does nothing.
package workflow

import "embed"

// Files is the marketplace folder.
//
//go:embed all:.claude-plugin all:workflow
var Files embed.FS
