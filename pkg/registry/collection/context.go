// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package collection

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
)

// Purge is a deletecollection that is bound to one incarnation of a Namespace.
type Purge struct {
	// NamespaceUID is the UID of the Namespace.
	NamespaceUID types.UID
	// Done is called, if it is set, when all objects that the request selects
	// have been asked to go, with the number of those that it removed and of
	// those that are still there: they wait for a finalizer or for whoever runs
	// them. A Namespace that was being deleted when the request was made gets no
	// new ones.
	Done func(deleted, remaining int)
}

type purgeKey struct{}

// WithPurge makes a DeleteCollection with the context a purge.
func WithPurge(ctx context.Context, purge Purge) context.Context {
	return context.WithValue(ctx, purgeKey{}, purge)
}

// PurgeFrom returns the purge that a DeleteCollection with the context is, if it
// is one.
func PurgeFrom(ctx context.Context) (purge Purge, ok bool) {
	purge, ok = ctx.Value(purgeKey{}).(Purge)
	return purge, ok
}
