// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifests tests artifacts/deploy and artifacts/charts: it renders
// them with the pinned kustomize and helm, and checks what they are without a
// cluster.
package manifests
