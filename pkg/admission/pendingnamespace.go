// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type pendingNamespaceKey struct{}

// WithPendingNamespace returns a context for the admission of an object that is created in
// one transaction with its Namespace, which does not exist yet.
func WithPendingNamespace(ctx context.Context, ns *metav1.ObjectMeta) context.Context {
	return context.WithValue(ctx, pendingNamespaceKey{}, ns)
}

// PendingNamespaceFrom returns the metadata of the Namespace of WithPendingNamespace, or nil.
func PendingNamespaceFrom(ctx context.Context) *metav1.ObjectMeta {
	ns, _ := ctx.Value(pendingNamespaceKey{}).(*metav1.ObjectMeta)
	return ns
}

// IsPendingNamespace reports whether the Namespace is that of WithPendingNamespace.
func IsPendingNamespace(ctx context.Context, name string) bool {
	ns := PendingNamespaceFrom(ctx)
	return ns != nil && ns.Name == name
}
