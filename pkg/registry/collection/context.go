// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package collection

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
)

type namespaceUIDKey struct{}

// WithNamespaceUID makes a DeleteCollection with the context a purge of the
// Namespace that has the UID.
func WithNamespaceUID(ctx context.Context, uid types.UID) context.Context {
	return context.WithValue(ctx, namespaceUIDKey{}, uid)
}

// NamespaceUIDFrom returns the UID of the Namespace that is purged, if one is.
func NamespaceUIDFrom(ctx context.Context) (uid types.UID, ok bool) {
	uid, ok = ctx.Value(namespaceUIDKey{}).(types.UID)
	return uid, ok
}
