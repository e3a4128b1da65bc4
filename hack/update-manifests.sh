#!/usr/bin/env bash
# Copyright The Borough Authors.
# SPDX-License-Identifier: Apache-2.0

# Copies artifacts/monitoring/rules.yaml to where the chart and the component
# prometheus-rule can read it.
set -o errexit -o nounset -o pipefail
unset CDPATH && cd "$(dirname "${BASH_SOURCE[0]}")/../artifacts"

cp monitoring/rules.yaml charts/borough/files/rules.yaml
component=deploy/components/prometheus-rule/prometheus-rule.yaml
rule=$(sed '/^spec:$/q' $component)
{
    echo "$rule"
    sed -n '/^groups:$/,$p' monitoring/rules.yaml | sed 's/^./  &/'
} >$component
