#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the tests that need a real Kubernetes control plane, which is built first
# if it has not been. hack/attack.sh runs the test that sends hostile requests
# through it, and hack/verify-manifests.sh those of the manifests. RACE=1 turns the race detector on; arguments are passed to go test.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

race=()
[[ ${RACE:-0} == 0 ]] || race=(-race)
BOROUGH_KUBERNETES_BIN=$(hack/kubernetes.sh)
export BOROUGH_KUBERNETES_BIN
cd test/kubernetes
go list ./... | grep -vE '/(attack|manifests)$' | xargs go test -vet=off -timeout 20m "${race[@]}" "$@"
