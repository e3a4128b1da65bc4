#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the tests that need a real Kubernetes control plane, which is built first
# if it has not been. hack/attack.sh runs the test that sends hostile requests
# through it, and hack/verify-manifests.sh those of the manifests. RACE=1 turns the
# race detector on in the tests of concurrency. Arguments are those of go test in place
# of all packages, and then RACE=1 turns it on in all of them.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

plain=$PWD/bin race=() BOROUGH_BIN=$PWD/bin
[[ ${RACE:-0} == 0 ]] || race=(-race) BOROUGH_BIN=$PWD/.cache/race
hack/build.sh "${race[@]}" -o "$BOROUGH_BIN/"
BOROUGH_KUBERNETES_BIN=$(hack/kubernetes.sh)
export BOROUGH_KUBERNETES_BIN BOROUGH_BIN
# -count=1: the test cache does not know what the binaries are built from.
flags=(-vet=off -count=1)
if (($#)); then
    cd test/kubernetes
    exec go test "${flags[@]}" "${race[@]}" "$@"
fi
# The other packages check deployments, manifests and messages. There the race detector
# takes a third of the time, and these packages and make test run the same code with it.
concurrent=(./storm ./ha ./e2e ./visibility)
[[ $BOROUGH_BIN == "$plain" ]] || hack/build.sh
cd test/kubernetes
others=$(go list ./... | grep -vE '/(attack|manifests)$' | grep -vxFf <(go list "${concurrent[@]}"))
# -p 2, twice: of four packages, two mostly wait. Those that take longest start first.
flags+=(-p 2 -timeout 60m)
go test "${flags[@]}" "${race[@]}" "${concurrent[@]}" &
failed=0
# shellcheck disable=SC2086 # several paths without spaces
BOROUGH_BIN=$plain go test "${flags[@]}" ./doctor ./differential ./deployment $others || failed=1
wait $!
exit $failed
