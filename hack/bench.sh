#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Compares Borough with Kubernetes on this machine and writes the outcome to
# docs/benchmarks.md. Arguments are handed to the program: -short for a look,
# -run to choose cases (-run 'limitranger|share'), -list to see them, -help for
# the rest.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

hack/build.sh
BOROUGH_HOSTCLUSTER_BIN=$(hack/hostcluster.sh)
export BOROUGH_HOSTCLUSTER_BIN BOROUGH_BIN=$PWD/bin
mkdir -p .cache/tools
go -C test/hostcluster build -o "$PWD/.cache/tools/bench" ./bench
# What measures the LimitRanger of each by itself. Kubernetes' is built as the host
# cluster is, of which most of it has been built.
go build -o .cache/tools/limitranger-borough ./test/limitranger
CGO_ENABLED=0 go -C test/hostcluster/kube build -trimpath -o "$PWD/.cache/tools/limitranger-kubernetes" ./limitranger
exec .cache/tools/bench "$@"
