#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Sends thousands of requests to a kube-apiserver and to Borough and compares the
# answers. Scenarios that show a difference are made small and added to
# test/hostcluster/differential/testdata/found.yaml, where make test runs them
# from then on. Arguments are handed to the test: -seed repeats a run, -cases says
# how many scenarios are generated in each area.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

BOROUGH_HOSTCLUSTER_BIN=$(hack/hostcluster.sh)
export BOROUGH_HOSTCLUSTER_BIN
exec go -C test/hostcluster test -count=1 -timeout 60m ./differential -cases=1500 -keep=testdata/found.yaml -v "$@"
