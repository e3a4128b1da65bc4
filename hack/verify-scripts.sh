#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that every shell script parses and is executable. Scripts in testdata are
# only parsed: the test passes them to a shell.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

hack/list-files.sh '*.sh' .ci/run | {
    failed=0
    while read -r -d '' file; do
        bash -n "$file" || failed=1
        if [[ ! -x $file && $file != */testdata/* ]]; then
            echo "verify-scripts: $file is not executable" >&2
            failed=1
        fi
    done
    exit $failed
}
