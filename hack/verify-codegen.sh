#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that generated files are up to date with the working tree. It generates
# into a copy and changes nothing.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch"/{is,should}

hack/list-files.sh | tar --create --null --files-from=- | tar --extract --directory="$scratch/is"
cp -R "$scratch/is/." "$scratch/should"
# Both use the same pinned tools; a link avoids building them twice.
mkdir -p .cache
ln -s "$PWD/.cache" "$scratch/should/.cache"

"$scratch/should/hack/update-codegen.sh" >"$scratch/log" 2>&1 || {
    cat "$scratch/log" >&2
    exit 1
}
# This also finds files that are missing and files that should not exist.
if ! (cd "$scratch" && diff --recursive --unified --new-file is/pkg should/pkg); then
    echo "verify-codegen: run make update-codegen" >&2
    exit 1
fi
