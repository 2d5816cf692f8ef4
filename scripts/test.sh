#!/usr/bin/env bash
# The whole gate, as CI runs it: installs what is missing, then checks, builds
# and tests everything. Under 20 minutes on two cores.
#
#   scripts/test.sh          everything
#   scripts/test.sh quick    without real servers, fuzzing and benchmarks
#   scripts/test.sh fuzz     fuzz targets only; FUZZ_SECONDS each, 30 if not set
. "$(dirname "$0")/lib.sh"

what=${1:-all}
case "$what" in
all | quick | fuzz) ;;
*) die "usage: scripts/test.sh [quick|fuzz]" ;;
esac

started=$SECONDS
did() { printf -- '-- %s: %ds\n' "$1" $((SECONDS - ${2:-$began})); }
# run NAME COMMAND... says what it runs, and how long that took.
run() {
	local name=$1
	shift
	step "$name: $*"
	began=$SECONDS
	"$@" || die "$name failed: $*"
	did "$name"
}

gofmt_clean() {
	local bad
	bad=$(git ls-files -co --exclude-standard '*.go' | xargs -r gofmt -l)
	[ -z "$bad" ] || die "gofmt would change:"$'\n'"$bad"
}

# every_fuzz runs each fuzz target of the tree for a while, by itself: go test
# takes one at a time.
every_fuzz() {
	local file target
	while IFS=: read -r file target; do
		run "fuzz $target" go test "./$(dirname "$file")" -run '^$' \
			-fuzz "^$target\$" -fuzzminimizetime 5x -fuzztime "${FUZZ_SECONDS:-30}s"
	done < <(git grep --untracked -oE '^func Fuzz[A-Za-z0-9]+' -- '*_test.go' | sed 's/func //')
}

if [ "$what" = fuzz ]; then
	need_go
	every_fuzz
	exit
elif [ "$what" = quick ]; then
	need_go
else
	run "set-up" scripts/setup.sh
	need_go
	# A server that is missing from here on is a failure, not a skip.
	export GALE_REQUIRE_SERVERS=1
fi

run "format" gofmt_clean
run "vet" go vet -tags integration,invariants ./...
[ "$what" = quick ] || run "lint" golangci-lint run ./...
run "build" go build -o "$TOOLS/bin/gale-rls" ./cmd/gale-rls
export GALE_BIN=$TOOLS/bin/gale-rls

if [ "$what" = quick ]; then
	run "unit tests" go test -shuffle=on -tags invariants ./...
	step "all passed, quick, in $((SECONDS - started))s"
	exit
fi

run "house rules" go test ./internal/arch
# Tests that use real servers measure time, so they do not share the machine
# with tests that use all of it.
tested_by_testenv() { go list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./... | grep "$@" internal/testenv | cut -d' ' -f1; }
# shellcheck disable=SC2046 # one word a package
run "unit tests" go test -race -shuffle=on -tags invariants -timeout 12m $(tested_by_testenv -v)
# shellcheck disable=SC2046
run "tests with servers" go test -race -shuffle=on -tags invariants -timeout 12m -p 1 $(tested_by_testenv -e)
# Under the race detector these are shortened; here they run in full.
run "search and simulation" go test ./pkg/gale/sim ./spec/...
# Budgets are measured without the race detector, which allocates on its own.
run "allocation budgets" go test -run 'Alloc|Budget' ./...
run "integration" go test -tags integration -parallel 4 -p 1 -timeout 15m ./integration/conformance ./integration
every_fuzz
run "benchmarks, once" go test -run '^$' -bench . -benchtime 1x -timeout 10m ./...

step "all passed in $((SECONDS - started))s"
