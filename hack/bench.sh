#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Compares Borough with Kubernetes on this machine and writes the outcome to
# docs/benchmarks.md. Arguments are handed to the program: -short for a look,
# -run to choose cases, -list to see them, -help for the rest.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

hack/build.sh
BOROUGH_HOSTCLUSTER_BIN=$(hack/hostcluster.sh)
export BOROUGH_HOSTCLUSTER_BIN BOROUGH_BIN=$PWD/bin
mkdir -p .cache/tools
go -C test/hostcluster build -o "$PWD/.cache/tools/bench" ./bench
exec .cache/tools/bench "$@"
