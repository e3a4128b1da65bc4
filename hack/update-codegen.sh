#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Regenerates everything that is generated from the API types: protobuf,
# deepcopy, defaults, conversions, OpenAPI, apply configurations, clientset,
# listers and informers. The generators are pinned in hack/tools/go.mod; protoc
# must be on the PATH.
set -o errexit -o nounset -o pipefail

unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
module=github.com/borough-io/borough
internal=$module/pkg/apis/tenancy
v1=$internal/v1
generated=pkg/generated
header=$root/hack/boilerplate.go.txt

command -v protoc >/dev/null || {
    echo "update-codegen: protoc is not on the PATH (Debian: apt-get install protobuf-compiler)" >&2
    exit 1
}

hack/tools.sh
export PATH=$root/.cache/tools:$PATH

# The generators write files by import path, so they run in a tree of links to the
# modules.
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
link() { mkdir -p "$tree/$(dirname "$1")" && ln -s "$2" "$tree/$1"; }
link $module "$root"
for m in k8s.io/api k8s.io/apimachinery; do
    go mod download $m # if nothing has needed it before, it has no directory
    link $m "$(go list -m -f '{{.Dir}}' $m)"
done
link github.com/gogo/protobuf "$(cd hack/tools && go list -m -f '{{.Dir}}' github.com/gogo/protobuf)"

echo "protobuf"
rm -f pkg/apis/tenancy/v1/generated.{proto,pb.go,protomessage.pb.go}
go-to-protobuf \
    --go-header-file "$header" \
    --output-dir "$tree" \
    --proto-import "$tree" \
    --proto-import "$tree/github.com/gogo/protobuf/protobuf" \
    --apimachinery-packages "$(printf '%s,' \
        -k8s.io/apimachinery/pkg/util/intstr \
        -k8s.io/apimachinery/pkg/api/resource \
        -k8s.io/apimachinery/pkg/runtime/schema \
        -k8s.io/apimachinery/pkg/runtime \
        -k8s.io/apimachinery/pkg/apis/meta/v1 \
        -k8s.io/api/core/v1)-k8s.io/api/rbac/v1" \
    --packages $v1

echo "deepcopy, defaults, conversions"
find pkg/apis -name 'zz_generated.*.go' -delete
deepcopy-gen --go-header-file "$header" --output-file zz_generated.deepcopy.go $internal $v1
defaulter-gen --go-header-file "$header" --output-file zz_generated.defaults.go --extra-peer-dirs $module/pkg/corepod/defaults $v1
conversion-gen --go-header-file "$header" --output-file zz_generated.conversion.go $v1

echo "OpenAPI"
mkdir -p $generated/openapi
openapi-gen \
    --go-header-file "$header" \
    --output-dir $generated/openapi --output-pkg $module/$generated/openapi \
    --output-file zz_generated.openapi.go \
    --output-model-name-file zz_generated.model_name.go \
    --report-filename "$tree/violations" \
    --readonly-pkg k8s.io/api/authentication/v1 \
    --readonly-pkg k8s.io/api/authorization/v1 \
    --readonly-pkg k8s.io/api/coordination/v1 \
    --readonly-pkg k8s.io/api/core/v1 \
    --readonly-pkg k8s.io/api/events/v1 \
    --readonly-pkg k8s.io/api/rbac/v1 \
    --readonly-pkg k8s.io/apimachinery/pkg/api/resource \
    --readonly-pkg k8s.io/apimachinery/pkg/apis/meta/v1 \
    --readonly-pkg k8s.io/apimachinery/pkg/runtime \
    --readonly-pkg k8s.io/apimachinery/pkg/util/intstr \
    --readonly-pkg k8s.io/apimachinery/pkg/version \
    k8s.io/api/authentication/v1 \
    k8s.io/api/authorization/v1 \
    k8s.io/api/coordination/v1 \
    k8s.io/api/core/v1 \
    k8s.io/api/events/v1 \
    k8s.io/api/rbac/v1 \
    k8s.io/apimachinery/pkg/api/resource \
    k8s.io/apimachinery/pkg/apis/meta/v1 \
    k8s.io/apimachinery/pkg/runtime \
    k8s.io/apimachinery/pkg/util/intstr \
    k8s.io/apimachinery/pkg/version \
    $v1
if grep "$v1" "$tree/violations"; then
    echo "update-codegen: the API types violate the rules above" >&2
    exit 1
fi

echo "apply configurations, clientset, listers, informers"
rm -rf $generated/{applyconfiguration,clientset,listers,informers}
go run ./hack/openapi-schema >"$tree/schema.json"
core=k8s.io/client-go/applyconfigurations/core/v1
rbac=k8s.io/client-go/applyconfigurations/rbac/v1
applyconfiguration-gen \
    --go-header-file "$header" \
    --output-dir $generated/applyconfiguration --output-pkg $module/$generated/applyconfiguration \
    --external-applyconfigurations "$(printf "k8s.io/api/core/v1.%s:$core," \
        LimitRangeSpec ObjectReference PodSpec PodStatus ResourceQuotaSpec ResourceQuotaStatus)$(printf "k8s.io/api/rbac/v1.%s:$rbac," \
        Subject)k8s.io/api/rbac/v1.RoleRef:$rbac" \
    --openapi-schema "$tree/schema.json" \
    $v1
client-gen \
    --go-header-file "$header" \
    --output-dir $generated/clientset --output-pkg $module/$generated/clientset \
    --clientset-name versioned \
    --apply-configuration-package $module/$generated/applyconfiguration \
    --input-base "" --input $v1 \
    --prefers-protobuf
lister-gen \
    --go-header-file "$header" \
    --output-dir $generated/listers --output-pkg $module/$generated/listers \
    $v1
informer-gen \
    --go-header-file "$header" \
    --output-dir $generated/informers --output-pkg $module/$generated/informers \
    --versioned-clientset-package $module/$generated/clientset/versioned \
    --listers-package $module/$generated/listers \
    $v1
