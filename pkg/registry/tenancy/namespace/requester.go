// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/tools/cache"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

type requesterKey struct{}

// WithRequester returns a context for the create of a Namespace that the user has
// requested.
func WithRequester(ctx context.Context, user string) context.Context {
	return context.WithValue(ctx, requesterKey{}, user)
}

// setRequester sets the annotation of a new Namespace that was requested. In another
// one it is invalid.
func setRequester(ctx context.Context, ns *tenancy.Namespace) {
	if user, ok := ctx.Value(requesterKey{}).(string); ok {
		annotate(ns, user)
	}
}

func isRequested(ctx context.Context) bool { return ctx.Value(requesterKey{}) != nil }

// keepRequester restores the annotation if an update does not have it, as a PUT of a
// manifest does not. Another value is invalid.
func (base) keepRequester(newNS, oldNS *tenancy.Namespace) {
	user, requested := oldNS.Annotations[tenancy.RequesterAnnotation]
	if _, has := newNS.Annotations[tenancy.RequesterAnnotation]; requested && !has {
		annotate(newNS, user)
	}
}

func annotate(ns *tenancy.Namespace, requester string) {
	tenancy.SetAnnotation(&ns.ObjectMeta, tenancy.RequesterAnnotation, requester)
}

// requesterField is a field of the index. Users cannot select by it.
const requesterField = "requester"

// Requested returns the predicate that selects the Namespaces that the user has
// requested.
func Requested(user string) storage.SelectionPredicate {
	predicate := Match(labels.Everything(), fields.OneTermEqualSelector(requesterField, user))
	predicate.IndexFields = []string{requesterField}
	return predicate
}

// Indexers finds the Namespaces of a requester in the watch cache without looking at
// all.
func Indexers() *cache.Indexers {
	return &cache.Indexers{
		storage.FieldIndex(requesterField): func(obj any) ([]string, error) {
			ns, ok := obj.(*tenancy.Namespace)
			if !ok {
				return nil, fmt.Errorf("index a namespace by requester: got %T", obj)
			}
			if user, requested := ns.Annotations[tenancy.RequesterAnnotation]; requested {
				return []string{user}, nil
			}
			return nil, nil
		},
	}
}

// CountRequested returns how many Namespaces that the user has requested exist at the
// time of the call or later, Terminating ones included. With a watch cache it costs
// one small read from etcd, regardless of how many other Namespaces there are.
func (r *REST) CountRequested(ctx context.Context, user string) (int, error) {
	list, err := r.store.ListPredicate(ctx, Requested(user), nil)
	if err != nil {
		return 0, err
	}
	return meta.LenList(list), nil
}
