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

exec hack/test-kubernetes.sh -timeout 60m ./differential -cases=1500 -keep=testdata/found.yaml -seed="$(od -An -N6 -tu8 /dev/urandom | tr -d " ")" -v "$@"
