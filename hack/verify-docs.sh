#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that the reference of the flags matches the binaries in bin/, that the charts
# match the tables, and that the links in the documents refer to files that exist.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

hack/update-docs.sh "$scratch"
for want in "$scratch"/*; do
    dir=docs/reference
    [[ $want != *.svg ]] || dir=docs/images
    if ! diff --unified "$dir/$(basename "$want")" "$want"; then
        echo "verify-docs: run make update-docs" >&2
        failed=1
    fi
done

hack/list-files.sh '*.md' | {
    while read -r -d '' document; do
        while read -r target; do
            if [[ ! -e $(dirname "$document")/${target%%#*} ]]; then
                echo "verify-docs: $document links to $target, which does not exist" >&2
                failed=1
            fi
        done < <(grep -oE '\]\([^)#: ][^): ]*\)' "$document" | sed -E 's/^\]\(|\)$//g')
    done
    exit $failed
}
