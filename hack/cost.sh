#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Sends the longest lists and maps to a server that counts the code it executes and the
# memory it allocates. With -short as the first argument it sends a sample, always the
# same, so that a change is tested like its base; without, it sends all of them. Other
# arguments are passed to the test.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

sample=(-bodies=-1)
if [[ ${1:-} == -short ]]; then
    shift
    sample=(-seed=1)
fi
go test -vet=off -count=1 -timeout=3h ./test/cost -args "${sample[@]}" "$@"
