# localllm: `make demo` shows the whole way on this machine, `make test` proves it. `make help` lists the rest.
SHELL := /bin/bash
.DEFAULT_GOAL := help
export GOFLAGS := -buildvcs=false

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT  ?= $(shell git rev-parse --short HEAD 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)
TOOLS   := $(CURDIR)/.tools/bin
ROUNDS  ?= 500
FUZZTIME ?= 3m

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.8.0

.PHONY: help build install demo test test-clients race check vet fmt lint vuln generate engines bench chaos fuzz cover cross clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

build: ## bin/localllm
	go build -ldflags '$(LDFLAGS)' -o bin/localllm ./cmd/localllm

install: ## localllm into GOBIN
	go install -ldflags '$(LDFLAGS)' ./cmd/localllm

demo: build engines ## the whole way on this machine; MODEL=… for a real model, PULL=1 to fetch it
	@LOCALLLM_LLAMA_SERVER=$${LOCALLLM_LLAMA_SERVER:-$(CURDIR)/.engines/bin/llama-server} LOCALLLM_OLLAMA=$${LOCALLLM_OLLAMA:-$(CURDIR)/.engines/bin/ollama} \
	  bin/localllm demo $(if $(MODEL),--model '$(MODEL)') $(if $(PULL),--pull)

test: engines ## all tests, against real engines
	go test -timeout 20m ./...

test-clients: build engines ## real MCP clients against the real server
	go test -tags clients -timeout 20m -count=1 ./test/clients/...

race: engines ## all tests under the race detector
	go test -race -timeout 40m ./...

check: fmt vet lint generate vuln ## format, vet on every platform, lint, tidy, generated files
	go mod tidy -diff
	go test ./internal/repotest

fmt:
	@unformatted=$$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l); \
	  test -z "$$unformatted" || { echo "gofmt: $$unformatted"; exit 1; }

vet:
	go vet ./...
	CGO_ENABLED=0 go vet ./...
	CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 go vet ./...
	CGO_ENABLED=0 GOOS=windows GOARCH=amd64 go vet ./...

lint: $(TOOLS)/staticcheck
	$(TOOLS)/staticcheck ./...

$(TOOLS)/staticcheck:
	GOBIN=$(TOOLS) go install $(STATICCHECK)

$(TOOLS)/govulncheck:
	GOBIN=$(TOOLS) go install $(GOVULNCHECK)

# The database of vulnerabilities is a host of its own; where it can't be reached, say so and go on.
vuln: $(TOOLS)/govulncheck
	@out=$$($(TOOLS)/govulncheck ./... 2>&1); status=$$?; \
	  if [ $$status -ne 0 ] && grep -qE 'dial tcp|no such host|connection refused|Forbidden|proxyconnect|fetching vulnerabilities' <<<"$$out"; \
	  then echo "govulncheck: its database can't be reached from here, not checked"; \
	  else echo "$$out"; exit $$status; fi

generate: ## docs/cli.md, docs/tool.md and man pages are what the code says
	go run ./cmd/localllm docs --check docs

engines: ## llama-server and ollama for the tests, in .engines
	@go run ./test/engines

bench: build engines ## measure, and write docs/results.md
	go run ./test/bench -results docs/results.md

chaos: engines ## kill everything at random: ROUNDS=500
	LOCALLLM_CHAOS=$(ROUNDS) go test -count=1 -timeout 60m ./test/chaos/... ./internal/workspace/... ./internal/journal/...

fuzz: ## every parser of foreign text: FUZZTIME=3m each
	@set -e; for f in $$(git grep -l '^func Fuzz' -- '*_test.go'); do \
	  for name in $$(grep -oE '^func Fuzz[A-Za-z0-9_]+' $$f | cut -c6-); do \
	    echo "== $$name ($$f)"; go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) ./$$(dirname $$f); \
	  done; done

cover: engines ## coverage of the packages that decide; each has to reach 85 %
	@set -e; for p in capability lifecycle delegate scoring stats; do \
	  go test -coverprofile=.cover.out ./$$p >/dev/null; \
	  got=$$(go tool cover -func=.cover.out | awk 'END { sub("%", "", $$3); print $$3 }'); \
	  printf '%-12s %s %%\n' $$p $$got; \
	  awk -v got=$$got 'BEGIN { exit !(got >= 85) }' || { echo "cover: $$p is under 85 %"; exit 1; }; \
	done

cross: ## the released Linux binaries, with cgo for NVML; arm64 needs gcc-aarch64-linux-gnu, amd64 gcc-x86-64-linux-gnu
	@set -e; mkdir -p dist; for arch in amd64:x86_64 arm64:aarch64; do \
	  cc=$${arch#*:}-linux-gnu-gcc; goarch=$${arch%%:*}; \
	  command -v $$cc >/dev/null || { echo "cross: there is no $$cc; Debian has it in gcc-$$(echo $${arch#*:} | tr _ -)-linux-gnu"; exit 1; }; \
	  CGO_ENABLED=1 GOOS=linux GOARCH=$$goarch CC=$$cc go build -ldflags '$(LDFLAGS)' -o dist/localllm-linux-$$goarch ./cmd/localllm; \
	  go version -m dist/localllm-linux-$$goarch | grep -q 'CGO_ENABLED=1' || { echo "cross: built without cgo"; exit 1; }; \
	  echo "dist/localllm-linux-$$goarch: $$(go version -m dist/localllm-linux-$$goarch | grep -oE '(CGO_ENABLED|GOARCH)=.*' | tr '\n' ' ')"; \
	done

clean: ## remove what was built, the engines too
	rm -rf bin dist .tools .engines .cover.out
