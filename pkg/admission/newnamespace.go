// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import "context"

type newNamespaceKey struct{}

// WithNewNamespace returns a context for the admission of an object that is created in
// one transaction with its Namespace, which does not exist yet.
func WithNewNamespace(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, newNamespaceKey{}, name)
}

// IsNewNamespace reports whether the Namespace is that of WithNewNamespace.
func IsNewNamespace(ctx context.Context, name string) bool {
	return ctx.Value(newNamespaceKey{}) == name
}
