// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package
// +groupName=tenancy.borough.io

// Package tenancy holds the internal (hub) types of the tenancy.borough.io
// group. Validation, strategies and admission work on these; only package v1
// is ever seen on the wire or in etcd.
package tenancy
