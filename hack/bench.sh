#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Compares Borough with Kubernetes on this machine and writes the results to
# docs/benchmarks.md. Arguments are passed to the program: -short for a quick run,
# -run to select cases (-run 'limitranger|share'), -list to list them, -help for
# the others.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Modules other than the root one do not name the toolchain.
GOTOOLCHAIN=$(sed -n 's/^toolchain //p' go.mod)
export GOTOOLCHAIN
hack/build-release.sh
BOROUGH_KUBERNETES_BIN=$(hack/kubernetes.sh)
export BOROUGH_KUBERNETES_BIN BOROUGH_BIN=$PWD/bin
mkdir -p .cache/tools
go -C test/kubernetes build -o "$PWD/.cache/tools/bench" ./bench
# Programs that measure each LimitRanger alone. The one of Kubernetes has the same
# build flags as the control plane, so most of it is in the build cache.
go build -o .cache/tools/limitranger-borough ./test/limitranger
go -C test/kubernetes/kube build -o "$PWD/.cache/tools/limitranger-kubernetes" ./limitranger
go test -c -o .cache/tools/rbac.test ./pkg/authorization/rbac
.cache/tools/bench "$@"
go run ./hack/charts # of the tables in docs/benchmarks.md, which a full run has written
