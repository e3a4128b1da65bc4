// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package validation says what is wrong with objects of the tenancy group. Its
// rules, paths and messages are those that Kubernetes has for the same kinds.
package validation
