#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Looks for orphans at length: what `make test` does for some rounds, for 200 in
# the calm and as many among faults. RACE=1 turns the race detector on; arguments
# are handed to the test: -rounds N for how many, -seed N for the choices of a
# run that went before.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

race=()
[[ ${RACE:-0} == 0 ]] || race=(-race)
BOROUGH_HOSTCLUSTER_BIN=$(hack/hostcluster.sh)
export BOROUGH_HOSTCLUSTER_BIN
exec go -C test/hostcluster test -count 1 -timeout 3h -v "${race[@]}" ./storm -args -rounds 200 "$@"
