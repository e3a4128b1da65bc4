#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the storm, which looks for orphans and for rights that are not in force when
# their grant or revocation was answered, for 200 rounds without faults and 200 with
# them; `make test-kubernetes` runs a few. RACE=1 turns the race detector on.
# Arguments are passed to the test: -rounds N sets the number of rounds, -seed N
# repeats the choices of an earlier run.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

exec hack/test-kubernetes.sh -timeout 12h -v ./storm -args -rounds 200 "$@"
