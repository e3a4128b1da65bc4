#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Sends hostile requests to a running server, standalone, as every role. This is
# the long form of what make test runs: all requests, more random ones, and a
# bound on the CPU time of each. Arguments are passed to the test: -seed=N repeats
# a run, -random=N sends more, -only=CLASS sends one class of requests.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

exec go test -count=1 -timeout=3h -v ./test/attack -args -every=1 -random=20000 -cpu "$@"
