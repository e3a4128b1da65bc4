#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that every shell script parses and is executable. Scripts in testdata are
# only parsed: the test passes them to a shell.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

files=$(git ls-files --cached --others --exclude-standard --deduplicate '*.sh' .ci/run)
failed=0
while read -r file; do
    [[ -f $file ]] || continue # removed, but still in the index
    bash -n "$file" || failed=1
    if [[ ! -x $file && $file != */testdata/* ]]; then
        echo "verify-scripts: $file is not executable" >&2
        failed=1
    fi
done <<<"$files"
exit $failed
