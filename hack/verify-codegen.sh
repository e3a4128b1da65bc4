#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that everything generated is what the generators make of the tree as it
# stands. It generates into a copy, so it changes nothing, and uncommitted
# changes neither help nor harm.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch"/{is,should}

git ls-files -z --cached --others --exclude-standard --deduplicate |
    while read -r -d '' file; do
        [[ ! -e $file ]] || printf '%s\0' "$file" # removed, yet still in the index
    done |
    tar --create --null --files-from=- | tar --extract --directory="$scratch/is"
cp -R "$scratch/is/." "$scratch/should"
# The tools are as pinned in both; a link saves building them twice.
mkdir -p .cache
ln -s "$PWD/.cache" "$scratch/should/.cache"

"$scratch/should/hack/update-codegen.sh" >"$scratch/log" 2>&1 || {
    cat "$scratch/log" >&2
    exit 1
}
# Both ways: what differs, what is missing, and what should no longer be there.
if ! (cd "$scratch" && diff --recursive --unified --new-file is/pkg should/pkg); then
    echo "verify-codegen: run make update-codegen" >&2
    exit 1
fi
