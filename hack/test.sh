#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the unit, storage and end-to-end tests. The end-to-end tests start the
# real binaries and use bin/kubectl as a client. The tests that send
# hostile requests are run by hack/attack.sh. RACE=1 turns the race detector on;
# arguments are passed to go test.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

race=() BOROUGH_BIN=$PWD/bin
[[ ${RACE:-0} == 0 ]] || race=(-race) BOROUGH_BIN=$PWD/.cache/race
hack/build.sh "${race[@]}" -o "$BOROUGH_BIN/"
export BOROUGH_BIN
export BOROUGH_KUBECTL=$PWD/bin/kubectl
# -parallel 4: parallel tests mostly wait.
# make verify runs go vet. Here it would type-check every dependency once more.
go -C hack/images test -vet=off .
# -count=1: the test cache does not know the files of other modules.
go -C test/monitoring test -vet=off -count=1 .
go -C examples/controller test -count=2 -vet=off "${race[@]}" .
# Of three packages, one mostly waits.
packages=$(($(getconf _NPROCESSORS_ONLN) * 3 / 2))
go list ./... | grep -vE '/test/(attack|cost)$' | xargs go test -vet=off -p "$packages" -parallel 4 -timeout 40m "${race[@]}" "$@"
