// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package delegation asks the cluster's kube-apiserver who may do what. It asks
// as little as possible, shares the answers, and bounds how much one user may make
// it ask.
package delegation
