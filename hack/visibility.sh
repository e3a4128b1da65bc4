#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Compares what users see of the Namespaces with their rights at every revision, for
# 1,000 rounds of changes, half of them with a fault; `make test-kubernetes` runs a few.
# RACE=1 turns the race detector on. Arguments are passed to the test: -rounds N sets the
# number of rounds, -seed N repeats the choices of an earlier run.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

exec hack/test-kubernetes.sh -timeout 3h -v ./visibility -run TestExactness -args -rounds 1000 "$@"
