#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Writes hack/server.pgo, the CPU profile that releases are optimized with, from a run of
# the benchmark.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

profiles=$(mktemp -d)
trap 'rm -rf "$profiles"' EXIT
hack/bench.sh -profiles "$profiles" -rounds 1 -run '^(namespaces|limitranges|pods|quotas|groups|get|watch|empty|fill|many|together|user|visible|deployed)$'
go tool pprof -proto -output=hack/server.pgo "$profiles"/*.pprof
