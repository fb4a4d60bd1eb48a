// Package clients holds the tests against real MCP clients, which make test-clients runs; the clients' versions are
// pinned in package.json. It never talks to anything but this machine, once the clients are there.
package clients
