// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type newNamespaceKey struct{}

// WithNewNamespace returns a context for the admission of an object that is created in
// one transaction with its Namespace, which does not exist yet.
func WithNewNamespace(ctx context.Context, ns *metav1.ObjectMeta) context.Context {
	return context.WithValue(ctx, newNamespaceKey{}, ns)
}

// NewNamespace returns the metadata of the Namespace of WithNewNamespace, or nil.
func NewNamespace(ctx context.Context) *metav1.ObjectMeta {
	ns, _ := ctx.Value(newNamespaceKey{}).(*metav1.ObjectMeta)
	return ns
}

// IsNewNamespace reports whether the Namespace is that of WithNewNamespace.
func IsNewNamespace(ctx context.Context, name string) bool {
	ns := NewNamespace(ctx)
	return ns != nil && ns.Name == name
}
