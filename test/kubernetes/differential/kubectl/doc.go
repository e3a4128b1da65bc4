// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubectl runs scripts of kubectl commands against kube-apiserver and
// against Borough and compares what users and their scripts see: the standard
// output, standard error and exit code of each command. Only the name of the
// group and the known differences may differ.
package kubectl
