#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints the files of the working tree that git does not ignore, each ended by NUL;
# arguments are patterns of git. Files that were removed can still be in the index.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

git ls-files -z --cached --others --exclude-standard --deduplicate "$@" |
    while read -r -d '' file; do
        [[ ! -e $file ]] || printf '%s\0' "$file"
    done
