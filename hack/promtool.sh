#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds promtool into .cache/tools, at the version of Prometheus that
# test/monitoring/go.mod pins, and prints its path. It is not a tool of that module,
# whose go.mod would then require the clients of all service discoveries.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=$(go -C test/monitoring list -m -f '{{.Version}}' github.com/prometheus/prometheus)
promtool=$PWD/.cache/tools/promtool-$version
if [[ ! -x $promtool ]]; then
    tmp=$(mktemp -d)
    trap 'rm -rf "$tmp"' EXIT
    cp test/monitoring/go.{mod,sum} "$tmp"
    # At the versions that the server has, what both use is compiled once.
    mapfile -t versions < <(go list -m -f '{{if not .Main}}-require={{.Path}}@{{.Version}}{{end}}' all)
    go mod edit "${versions[@]}" "$tmp/go.mod"
    go -C test/monitoring build -modfile="$tmp/go.mod" -mod=mod -tags remove_all_sd -ldflags '-s -w' -o "$promtool" github.com/prometheus/prometheus/cmd/promtool
fi
echo "$promtool"
