// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package coregroup serves the kinds that core/v1 and our group share as two API versions
// of the same stored objects: a Pod of core/v1 and one of tenancy.borough.io/v1 are
// converted from and to the same internal Pod.
//
// A standalone server serves both versions. Objects are stored in that of our group.
package coregroup
