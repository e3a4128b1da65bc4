#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints the licenses and notices of all that is linked into the binaries: Borough, Go, and
# the modules. Releases and images contain them.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

print() { printf '\n======== %s\n\n' "$1" && cat "$2"; }

print "github.com/borough-io/borough" LICENSE
print "Go" "$(go env GOROOT)/LICENSE"
modules=$(go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/... | sort -u)
while read -r path version dir; do
    files=$(find "$dir" -maxdepth 1 -type f -iregex '.*/\(licen[sc]e\|copying\|notice\|patents\)[^/]*' | sort)
    [[ $files ]] || { echo "licenses: $path has no file with a license" >&2; exit 1; }
    while read -r file; do
        print "$path $version: $(basename "$file")" "$file"
    done <<<"$files"
done <<<"$modules"
