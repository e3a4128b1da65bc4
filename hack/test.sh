#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the unit, storage and end-to-end tests. The end-to-end tests build and
# start the real binaries, and use bin/kubectl as a client. The tests that send
# hostile requests are run by hack/attack.sh. RACE=1 turns the race detector on;
# arguments are passed to go test.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

race=()
[[ ${RACE:-0} == 0 ]] || race=(-race)
export BOROUGH_KUBECTL=${BOROUGH_KUBECTL:-$PWD/bin/kubectl}
# make verify runs go vet. Here it would type-check every dependency once more.
go list ./... | grep -vE '/test/(attack|cost)$' | xargs go test -vet=off -timeout 20m "${race[@]}" "$@"
