#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Sends hostile requests to a running server: as every role to a standalone one, and
# as tenants through a kube-apiserver. With -short as the first argument it sends a
# sample of them and takes minutes; without, it sends all of them to the standalone
# server, adds random ones, and bounds the CPU time of each. Other arguments are passed
# to the tests: -seed=N repeats a run, -random=N sends more random requests,
# -only=CLASS sends one class.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

flags=(-vet=off -count=1 -timeout=3h)
if [[ ${1:-} == -short ]]; then
    shift
    # Always the same, so that a change is tested like its base.
    attack=(-seed=1) tenants=(-seed=1)
else
    flags+=(-v)
    attack=(-every=1 -random=20000 -cpu) tenants=()
fi
hack/build.sh
BOROUGH_KUBERNETES_BIN=$(hack/kubernetes.sh)
export BOROUGH_KUBERNETES_BIN BOROUGH_BIN=$PWD/bin
# One after the other, because they measure the CPU time of their servers.
go test "${flags[@]}" ./test/attack -args "${attack[@]}" "$@"
go -C test/kubernetes test "${flags[@]}" ./attack -args "${tenants[@]}" "$@"
