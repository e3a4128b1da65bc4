#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Tries the deployment of Borough in the Kubernetes cluster of a kubeconfig:
# `hack/test-cluster.sh KUBECONFIG`. The images are $REGISTRY/borough-apiserver:$TAG
# and $REGISTRY/borough-controller-manager:$TAG; by default there is no registry, and
# the tag is latest. Further arguments are passed to go test.
set -o errexit -o nounset -o pipefail
kubeconfig=$(realpath -e "${1:?the kubeconfig of a cluster}")
shift
cd "$(dirname "${BASH_SOURCE[0]}")/.."

hack/build.sh
hack/kubectl.sh
export BOROUGH_BIN=$PWD/bin BOROUGH_KUBECTL=$PWD/bin/kubectl
export BOROUGH_CLUSTER_KUBECONFIG=$kubeconfig BOROUGH_CLUSTER_REGISTRY=${REGISTRY:-} BOROUGH_CLUSTER_TAG=${TAG:-latest}
exec go -C test/kubernetes test -vet=off -count=1 -timeout 60m -v ./cluster "$@"
