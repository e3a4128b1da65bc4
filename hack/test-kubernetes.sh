#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the tests that need a real Kubernetes control plane, which is built first
# if it has not been. RACE=1 turns the race detector on; arguments are passed to
# go test.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

race=()
[[ ${RACE:-0} == 0 ]] || race=(-race)
BOROUGH_KUBERNETES_BIN=$(hack/kubernetes.sh)
export BOROUGH_KUBERNETES_BIN
exec go -C test/kubernetes test -vet=off -timeout 20m "${race[@]}" "$@" ./...
