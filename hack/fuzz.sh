#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs fuzz targets, each for a number of inputs on one core, and prints what
# came of them. Usage: hack/fuzz.sh [N [TARGET...]]. N multiplies the weights
# below and defaults to 1000; with 40000 all targets together run ten million
# inputs or more. Inputs that fail are kept in the testdata of the package, where
# go test runs them from then on.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

n=${1:-1000}
shift || true

# How many inputs a target is given for each of N: more where an input costs less.
declare -A weights=(
    [FuzzDecode]=30
    [FuzzProperties]=170
    [FuzzQuantities]=40
    [FuzzObjects]=5
    [FuzzPodDefaultsAreIdempotent]=4
    [FuzzRequests]=1
    [FuzzValidatePod]=1
    [FuzzValidatePodUnchanged]=1
)
targets=("$@")
((${#targets[@]})) || mapfile -t targets < <(printf '%s\n' "${!weights[@]}" | sort)

failed=0
for target in "${targets[@]}"; do
    package=$(dirname "$(grep --recursive --files-with-matches --include='*_test.go' "^func $target(" cmd pkg test)")
    inputs=$((n * ${weights[$target]:-1}))
    echo "== $target in $package, $inputs inputs"
    go test "./$package" -run='^$' -fuzz="^$target\$" -fuzztime="${inputs}x" -fuzzminimizetime=10x -parallel=1 || failed=1
done
exit $failed
