#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the Kubernetes control plane that tests run against: kube-apiserver and
# kube-controller-manager, at the version pinned in test/kubernetes/kube, etcd, etcdctl and
# etcdutl, at that in test/kubernetes/etcd, and the kubectl of hack/kubectl.sh. Prints the
# directory of the binaries. The first build takes minutes; it is repeated only when the
# pins or the compiler change. The flags are those of other builds, to use their build cache.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."
# Modules other than the root one do not name the toolchain.
GOTOOLCHAIN=$(sed -n 's/^toolchain //p' go.mod)
export GOTOOLCHAIN
kube=test/kubernetes/kube etcd=test/kubernetes/etcd
cache=$PWD/.cache/kubernetes

# The name of the directory is a hash of the inputs of the build.
key=$({ go env GOVERSION GOOS GOARCH; cat hack/kube{rnetes,ctl}.sh {test/kubernetes,"$kube","$etcd"}/go.{mod,sum} test/kubernetes/kubectl/*; } | sha256sum)
bin=$cache/${key:0:12}

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9 # one build at a time
if [[ ! -d $bin ]]; then
    rm -rf "$cache"/*.new
    mkdir "$bin.new"
    version=$(go -C "$kube" list -m -f '{{.Version}}' k8s.io/kubernetes)
    IFS=. read -r major minor _ <<<"${version#v}"
    flags=(-s -w)
    for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
        flags+=(-X "$package.gitVersion=$version" -X "$package.gitMajor=$major" -X "$package.gitMinor=$minor")
    done
    echo "building Kubernetes $version and its etcd, once" >&2
    nice go -C "$etcd" build -ldflags '-s -w' -o "$bin.new/" tool >&2
    nice go -C "$kube" build -ldflags "${flags[*]}" -o "$bin.new/" tool >&2
    nice hack/kubectl.sh "$bin.new/kubectl" >&2
    mv "$bin.new"/{server,etcd} # the package's path ends in server/v3
    mv "$bin.new" "$bin"
    # Remove the builds of earlier pins.
    find "$cache" -mindepth 1 -maxdepth 1 -type d ! -path "$bin" -exec rm -rf {} +
fi
echo "$bin"
