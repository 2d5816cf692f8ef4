#!/usr/bin/env bash
# The deep searches, then a million seeds of the fleet simulator: some hours on
# two cores, and 8 GB of memory. Fails with a seed and a shrunk trace on the
# first violation; else writes the seeds that came closest, which CI runs every
# time from then on.
#
#   scripts/soak.sh [SEEDS]
. "$(dirname "$0")/lib.sh"

need_go
export GALE_SIM_SEEDS=${1:-1000000}
export GALE_SIM_WORST=$PWD/pkg/gale/sim/testdata/worst-seeds.txt
step "deep searches"
GALE_SOAK=1 nice go test -count=1 -timeout 24h -v -run '^TestDeepSearch$' ./pkg/gale/sim
step "fleet simulator: $GALE_SIM_SEEDS seeds"
nice go test -count=1 -timeout 24h -v -run '^TestSeeds$' ./pkg/gale/sim
