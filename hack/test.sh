#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the tests of every package, the end-to-end tests among them. They build
# and start the real binaries, and drive them with bin/kubectl; those of
# test/hostcluster start a Kubernetes control plane too, which is built first if
# it never was. RACE=1 turns the race detector on; arguments are handed to go
# test.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

race=()
[[ ${RACE:-0} == 0 ]] || race=(-race)
export BOROUGH_KUBECTL=${BOROUGH_KUBECTL:-$PWD/bin/kubectl}
go test -timeout 20m "${race[@]}" "$@" ./...

BOROUGH_HOSTCLUSTER_BIN=$(hack/hostcluster.sh)
export BOROUGH_HOSTCLUSTER_BIN
go -C test/hostcluster test -timeout 20m "${race[@]}" "$@" ./...
