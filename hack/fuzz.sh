#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs fuzz targets, each for a number of inputs on one core. Usage:
#
#   hack/fuzz.sh [-guided] [N [TARGET...]]
#
# Without a TARGET it runs all of cmd and pkg. N multiplies the weights below and
# defaults to 1000. With -guided, coverage guides the choice of
# inputs. That finds inputs of new kinds, which later runs start from, but runs up
# to a hundred times fewer of them in the same time, because the counters of a
# whole server are read after each. An input that fails is kept in the testdata of
# the package, where go test runs it from then on.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/.."

guided=
if [[ ${1:-} == -guided ]]; then
    guided=yes
    shift
fi
n=${1:-1000}
shift || true

# How many inputs a target gets for each of N, if not one: more where an input costs less.
declare -A weights=(
    [FuzzDecode]=100
    [FuzzProperties]=70
    [FuzzQuantities]=65
    [FuzzTokenFile]=50
    [FuzzCompact]=100
    [FuzzShare]=100
    [FuzzValidatePodUnchanged]=10
    [FuzzRequests]=5
    [FuzzPodDefaultsAreIdempotent]=4
    [FuzzLabel]=100
    [FuzzSplit]=100
)
targets=("$@")
if ((!${#targets[@]})); then
    all=$(grep -rhoP --include='*_test.go' '^func \KFuzz\w+' cmd pkg | sort)
    mapfile -t targets <<<"$all"
fi

binaries=$(mktemp -d)
trap 'rm -rf "$binaries"' EXIT
failed=0
for target in "${targets[@]}"; do
    package=$(dirname "$(grep --recursive --files-with-matches --include='*_test.go' "^func $target(" cmd pkg test)")
    inputs=$((n * ${weights[$target]:-1}))
    echo "== $target in $package, $inputs inputs"
    flags=(-test.run='^$' -test.fuzz="^$target\$" -test.fuzztime="${inputs}x" -test.fuzzminimizetime=10x -test.parallel=1)
    if [[ $guided ]]; then
        go test "./$package" -vet=off "${flags[@]//-test./-}" || failed=1
        continue
    fi
    binary=$binaries/${package//\//-}.test
    [[ -e $binary ]] || go test -vet=off -c -o "$binary" "./$package"
    # The inputs that guided runs have found.
    found=$(go env GOCACHE)/fuzz/$(go list "./$package")
    (cd "$package" && "$binary" "${flags[@]}" -test.fuzzcachedir="$found") || failed=1
done
exit $failed
