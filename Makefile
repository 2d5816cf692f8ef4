# Every target is one line of what one would type; scripts/ holds the long ones.

.PHONY: help test quick race lint fuzz bench docs soak spec run

help: ## what there is to make
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

run: ## gale-rls, store in memory, rules in config/
	scripts/run.sh

test: ## the whole gate, as CI runs it (installs what it needs)
	scripts/test.sh

quick: ## format, vet, build, unit tests; needs Go only
	scripts/test.sh quick

race: ## unit tests under the race detector
	go test -race -shuffle=on -tags invariants ./...

lint: ## the linter (scripts/setup.sh installs it)
	.tools/bin/golangci-lint run ./...

fuzz: ## every fuzz target, 30 s each
	scripts/test.sh fuzz

bench: ## all benchmarks
	go test -run '^$$' -bench . ./...

soak: ## what takes longer than CI may: an hour and more
	GALE_TEST_OUTAGE=60s GALE_REQUIRE_SERVERS=1 go test -count 10 -tags invariants -timeout 8h ./pkg/...
	scripts/soak.sh
	FUZZ_SECONDS=600 scripts/test.sh fuzz

spec: ## exhaustive searches and negative controls; TLC too where there is Java
	go test -tags invariants ./spec/... ./pkg/gale/sim
	if command -v java >/dev/null; then scripts/spec.sh; fi

docs: ## writes what is generated from code: docs/configuration.md, docs/metrics.md
	go test ./internal/settings ./cmd/gale-rls -update
