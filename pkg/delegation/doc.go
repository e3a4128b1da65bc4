// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package delegation asks the cluster's kube-apiserver who a user is, and what the
// user may do. It asks as little as possible, shares the answers, and bounds how much
// one user may make it ask. It waits for a cluster that does not answer yet.
package delegation
