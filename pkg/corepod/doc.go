// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package corepod and the packages below it do with a core/v1 Pod what
// kube-apiserver does with it: they set defaults, drop the fields of disabled
// features, validate, warn and summarize. They work on the types of k8s.io/api/core/v1
// and know nothing of Borough's own.
//
// The behaviour is that of the release of Kubernetes that test/kubernetes/kube/go.mod
// pins, with its default feature gates: the same values, and the same paths, types
// and messages of errors, in the same order. That includes paths that name no field
// of the API; where one is kept, a comment says so.
//
// upstream.lock lists what of that release is mirrored and by which file. "make
// upstream" compares it with a release and names what has moved; docs/development.md
// says how to port the next one.
package corepod
