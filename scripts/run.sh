#!/usr/bin/env bash
# Runs gale-rls from source, with the environment and arguments given. With
# neither: the store in memory, the rules in config/.
. "$(dirname "$0")/lib.sh"
need_go
if [ $# = 0 ] && [ -z "${RUNTIME_ROOT:-}" ]; then
	printf 'When it listens, try this three times in another terminal; the third is refused:\n  %s\n\n' \
		"curl -s localhost:${PORT:-8080}/json -d '{\"domain\": \"gale\", \"descriptors\": [{\"entries\": [{\"key\": \"hello\", \"value\": \"you\"}]}]}'"
fi
exec go run ./cmd/gale-rls "$@"
