#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the tests that need a real Kubernetes control plane, which is built first
# if it has not been. hack/attack.sh runs the test that sends hostile requests
# through it, and hack/verify-manifests.sh those of the manifests. RACE=1 turns the
# race detector on. Arguments are those of go test in place of all packages.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

race=() BOROUGH_BIN=$PWD/bin
[[ ${RACE:-0} == 0 ]] || race=(-race) BOROUGH_BIN=$PWD/.cache/race
hack/build.sh "${race[@]}" -o "$BOROUGH_BIN/"
BOROUGH_KUBERNETES_BIN=$(hack/kubernetes.sh)
export BOROUGH_KUBERNETES_BIN BOROUGH_BIN
cd test/kubernetes
if ((!$#)); then
    packages=$(go list ./... | grep -vE '/(attack|manifests|storm)$')
    # The storm takes longest, so it starts first. -p 3: of three packages, one mostly waits.
    # shellcheck disable=SC2086 # several paths without spaces
    set -- -p 3 -timeout 60m ./storm $packages
fi
# -count=1: the test cache does not know what the binaries are built from.
exec go test -vet=off -count=1 "${race[@]}" "$@"
