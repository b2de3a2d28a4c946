# Every target covers all modules of go.work unless it says otherwise.

SHELL := /bin/bash
# Each commit tries other seeds of the simulator, and the same ones each time.
export QUORUM_SIM_SEED ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null)
STATICCHECK := $(CURDIR)/.cache/bin/staticcheck-$(shell go env GOVERSION)

# each runs a command in every module, goes on after a failure, and fails at the end.
each = status=0; for dir in $$(go list -m -f '{{.Dir}}'); do \
	echo "== $$dir: $(1)"; (cd $$dir && $(1)) || status=1; done; exit $$status

.PHONY: help check test race sim oldest bench benchmarks servers clean

help: ## list the targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 10

check: $(STATICCHECK) ## formatting, go vet, staticcheck, and the rules of the code base; no server needed
	@unformatted=$$(gofmt -l $$(find . -name '.?*' -prune -o -name '*.go' -print)); \
	if [ -n "$$unformatted" ]; then echo "run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	@$(call each,go vet ./...)
	@$(call each,$(STATICCHECK) ./...)
	go test -run '^TestRules' .

test: servers ## every test, also against real servers; installs the servers that are missing
	@$(call each,go test -timeout 15m ./...)

race: servers ## under the race detector what has goroutines: the root module but for the pure packages, and the Redis store
	go test -race -timeout 15m $$(go list ./... | grep -v -e /internal/core -e /internal/model$$ -e /internal/sim -e /quorumsim)
	cd stores/redisstore && go test -race -timeout 15m .

sim: ## the protocol in the simulator: seeds (QUORUM_SIM_SEED, QUORUM_SIM_SEEDS), scenarios, properties, mistakes
	go test -timeout 10m -v ./internal/sim/...

oldest: ## build and vet the root module with the oldest Go that it supports
	GOTOOLCHAIN=go1.25.0 GOWORK=off go vet ./...

bench: servers ## ours beside other libraries: rewrites bench/results and the tables in README.md and docs/performance.md; some ten minutes
	cd bench && go test -run '^$$' -bench '^BenchmarkReport$$' -benchtime 1x -write .

benchmarks: ## every benchmark of the code itself
	@$(call each,go test -run '^$$' -bench . -skip '^BenchmarkReport$$' -benchmem ./...)

servers: ## install the servers that the tests need and that are missing (Debian, as root or with sudo)
	@scripts/servers

clean: ## remove built tools
	rm -rf .cache

# The tools live in a module of their own and are built once for each version
# of Go and of themselves.
$(STATICCHECK): tools/go.mod tools/go.sum
	cd tools && GOWORK=off go build -o $@ honnef.co/go/tools/cmd/staticcheck
