// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:openapi-gen=true
// +k8s:openapi-model-package=com.github.borough-io.borough.pkg.apis.tenancy.v1
// +k8s:deepcopy-gen=package
// +k8s:protobuf-gen=package
// +k8s:conversion-gen=github.com/borough-io/borough/pkg/apis/tenancy
// +k8s:defaulter-gen=TypeMeta
// +groupName=tenancy.borough.io

// Package v1 is the v1 version of the tenancy.borough.io API. Its types are
// wire-compatible with those of the same name in core/v1, in JSON and in
// protobuf: a core/v1 manifest is accepted with only its apiVersion changed.
// A field that core/v1 does not have takes a protobuf number from 1000 up, so
// that core/v1 can grow without a clash.
package v1
