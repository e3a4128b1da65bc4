#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Sends the same thousands of requests to a kube-apiserver and to Borough and
# compares the responses. Scenarios that show a difference are minimized and added
# to test/kubernetes/differential/testdata/found.yaml, which make test-kubernetes
# runs. Arguments are passed to the test: -seed repeats a run, -cases sets the
# number of scenarios in each area.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

hack/build.sh
BOROUGH_KUBERNETES_BIN=$(hack/kubernetes.sh)
export BOROUGH_KUBERNETES_BIN BOROUGH_BIN=$PWD/bin
exec go -C test/kubernetes test -count=1 -timeout 60m ./differential -cases=1500 -keep=testdata/found.yaml -seed="$(od -An -N6 -tu8 /dev/urandom | tr -d " ")" -v "$@"
