#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Tries the deployment of Borough in the Kubernetes cluster of a kubeconfig:
# `hack/test-cluster.sh KUBECONFIG`. The images are $REGISTRY/borough-apiserver:$TAG
# and $REGISTRY/borough-controller-manager:$TAG; by default there is no registry, and
# the tag is latest. Optionally, $PREVIOUS is the tag of the images to upgrade from, and
# $NODE_DOWN and $NODE_UP are commands that end and start the node whose name is
# appended. Further arguments are passed to go test.
set -o errexit -o nounset -o pipefail
kubeconfig=$(realpath -e "${1:?the kubeconfig of a cluster}")
shift
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

hack/build.sh
hack/kubectl.sh
go -C test/kubernetes/etcd build -ldflags '-s -w' -o "$PWD/bin/" go.etcd.io/etcd/etcdctl/v3 go.etcd.io/etcd/etcdutl/v3
export BOROUGH_BIN=$PWD/bin BOROUGH_KUBECTL=$PWD/bin/kubectl
export BOROUGH_CLUSTER_KUBECONFIG=$kubeconfig BOROUGH_CLUSTER_REGISTRY=${REGISTRY:-} BOROUGH_CLUSTER_TAG=${TAG:-latest}
export BOROUGH_CLUSTER_PREVIOUS=${PREVIOUS:-} BOROUGH_CLUSTER_NODE_DOWN=${NODE_DOWN:-} BOROUGH_CLUSTER_NODE_UP=${NODE_UP:-}
exec go -C test/kubernetes test -vet=off -count=1 -timeout 90m -v ./cluster "$@"
