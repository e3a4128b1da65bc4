// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package validation says what is wrong with a Pod. Fields are expected to be
// defaulted.
package validation
