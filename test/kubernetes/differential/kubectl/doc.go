// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubectl runs scripts of kubectl commands against kube-apiserver and
// against Borough and compares what users and their scripts see: the standard
// output, standard error and exit code of each command. Only the known differences
// may differ.
//
// The scripts in testdata are the same for both. Those in testdata/own use Borough's
// own group, where the name of the group may differ as well.
package kubectl
