# What there is to do here. `make demo` and `make test` need nothing set up.

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# The toolchain with the newest fixes of the standard library where it can be had,
# else the machine's own.
ifeq ($(origin GOTOOLCHAIN),undefined)
  GOTOOLCHAIN := $(shell GOTOOLCHAIN=go1.27.3 go version >/dev/null 2>&1 && echo go1.27.3 || echo local)
endif
export GOTOOLCHAIN
# The version is stamped below; Go's own stamping fails in a clone of another user.
export GOFLAGS := $(filter-out -buildvcs=false,$(GOFLAGS)) -buildvcs=false

VERSION       := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
GOLANGCI_LINT := v2.15.0
GOVULNCHECK   := v1.9.0
FUZZTIME      ?= 30s
SOAK          ?= 10m

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 10

deps: ## install PostgreSQL, Chromium and bubblewrap if they are missing (as root with apt, else says how)
	@.ci/deps certificates postgres gcc chromium bubblewrap

build: ## bin/parley
	go build -trimpath -ldflags "-X main.version=$(VERSION)" -o bin/parley ./cmd/parley

run: build ## the daemon, with the configuration it finds
	exec bin/parley serve

demo: ## everything offline: private database, web chat, demo model
	@.ci/deps certificates postgres
	@$(MAKE) --no-print-directory build
	@exec bin/parley demo

test: deps ## all tests, race detector on; a skipped test fails
	@mkdir -p .cache
	@go test -race -timeout 20m -json ./... | go run ./.ci/summary | tee .cache/test.txt

check: lint ## formatting, vet, linters, architecture, known vulnerabilities
	@test -z "$$(gofmt -l $$(git ls-files '*.go') | tee /dev/stderr)"
	go vet ./... ./.ci/summary
	go vet -tags killpoints,bench ./...
	go test .
	@if curl -fsS -m 10 -o /dev/null https://vuln.go.dev/index/db.json 2>/dev/null; \
	then go run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK) ./...; \
	else echo "govulncheck: its database cannot be reached from here"; fi

lint: .cache/bin/golangci-lint-$(GOLANGCI_LINT)
	$< run ./...

.cache/bin/golangci-lint-$(GOLANGCI_LINT):
	GOBIN=$(CURDIR)/.cache/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT)
	mv .cache/bin/golangci-lint $@

bench: deps ## latency, CPU and memory under load, as a table
	@go test -tags bench -count=1 -timeout 30m -run '^TestBench$$' ./cmd/parley -v
	@echo "the agent itself: a request for 2,000 messages ≤ 2 median-ms, compressing them ≤ 50 cpu-ms, streams ≥ 100,000 events/s"
	@go test -run '^$$' -bench '(Assemble2000|Compress2000|Stream)' -benchtime 2s -cpu 1 ./agentcore/... | grep -E '^(pkg|Benchmark|---|FAIL)' | grep -B1 -E '^(Benchmark|---|FAIL)'
	@echo "searching and recalling by common words in a conversation of 100,000 messages"
	@go test -run '^$$' -bench CommonWords -benchtime 2s ./store | grep -E '^(Benchmark|---|FAIL)'

soak: deps ## the crash test for SOAK (10m)
	PARLEY_SOAK=$(SOAK) go test -race -count=1 -timeout 2h -run '^TestCrash' ./cmd/parley

fuzz: ## each fuzz target for FUZZTIME (30s)
	@for file in $$(git ls-files '*_test.go' | xargs grep -l '^func Fuzz'); do \
	  for name in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9]*\).*/\1/p' $$file); do \
	    go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x ./$$(dirname $$file); \
	  done; \
	done

.PHONY: help deps build run demo test check lint bench soak fuzz
