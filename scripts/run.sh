#!/usr/bin/env bash
# Runs gale-rls from source, with the environment and arguments given. With
# neither: the store in memory, the rules in config/.
. "$(dirname "$0")/lib.sh"
need_go
exec go run ./cmd/gale-rls "$@"
