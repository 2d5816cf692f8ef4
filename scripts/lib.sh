# Shared by the scripts here; sourced, not run. Leaves the caller in the
# repository's root, with what .tools holds first on PATH.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
TOOLS=$PWD/.tools
# shellcheck source=internal/testenv/versions.env
. internal/testenv/versions.env
export PATH=$TOOLS/bin:$PATH

step() { printf '\n== %s\n' "$*"; }
die() { printf '\nerror: %s\n' "$*" >&2; exit 1; }

# need_go finds Go, also where it is installed but not on PATH, and checks
# that it is new enough for this module.
need_go() {
	local want have dir
	want=$(sed -n 's/^go \([0-9]*\.[0-9]*\).*/\1/p' go.mod)
	for dir in /usr/local/go/bin /usr/lib/go/bin "$HOME/go/bin" "$HOME/sdk"/go*/bin /opt/homebrew/bin; do
		if ! command -v go >/dev/null && [ -x "$dir/go" ]; then
			echo "go is not on PATH; using $dir/go"
			export PATH=$dir:$PATH
		fi
	done
	command -v go >/dev/null || die "Go $want or newer is needed and there is no go command on PATH.
Install it (https://go.dev/doc/install), put its bin folder on PATH, and try again."
	# Asked outside the module, so that an old Go answers instead of refusing.
	have=$(cd / && go env GOVERSION | sed 's/^go//')
	if [ "$(printf '%s\n%s\n' "$want" "$have" | sort -V | head -n1)" != "$want" ] &&
		[ "$(go env GOTOOLCHAIN)" = local ]; then
		die "Go $want or newer is needed; $(command -v go) is $have.
Install a newer one (https://go.dev/doc/install), or set GOTOOLCHAIN=auto to let it fetch one."
	fi
}
