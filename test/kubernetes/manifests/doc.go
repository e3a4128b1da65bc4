// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifests tests artifacts/deploy and artifacts/charts. It renders them
// with kubectl and helm, and checks the output without a cluster.
package manifests
