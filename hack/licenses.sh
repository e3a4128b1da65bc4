#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints the licenses and notices of all that is linked into the binaries: Borough, Go, and
# the packages of the modules, some of which have code under another license than their
# module. Releases and images contain them.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."
# As hack/build-release.sh, and in one order everywhere.
export LC_ALL=C CGO_ENABLED=0 GOFLAGS=-mod=readonly

print() { printf '\n======== %s\n\n' "$1" && cat "$2"; }

print "github.com/borough-io/borough" LICENSE
print "Go" "$(go env GOROOT)/LICENSE"
packages=$(go list -deps -f '{{$dir := .Dir}}{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}} {{.Dir}} {{$dir}}{{end}}{{end}}' ./cmd/...)
# The directories from each package up to the root of its module.
directories=$(while read -r module root dir; do
    while echo "$module $root $dir" && [[ $dir != "$root" ]]; do dir=${dir%/*}; done
done <<<"$packages" | sort -u)
while read -r module root dir; do
    files=$(find "$dir" -maxdepth 1 -type f -iregex '.*/\(licen[sc]e\|copying\|notice\|patents\)[^/]*' ! -name '*.go' | sort)
    if [[ ! $files ]]; then
        [[ $dir != "$root" ]] || { echo "licenses: $module has no file with a license" >&2; exit 1; }
        continue
    fi
    while read -r file; do
        print "$module: ${file#"$root"/}" "$file"
    done <<<"$files"
done <<<"$directories"
