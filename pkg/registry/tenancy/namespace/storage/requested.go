// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/borough-io/borough/pkg/registry/tenancy/namespace"
)

// CountRequested returns how many Namespaces that the user has requested exist at the
// time of the call or later, Terminating ones included. With a watch cache it costs
// one small read from etcd, regardless of how many other Namespaces there are.
func (r *REST) CountRequested(ctx context.Context, user string) (int, error) {
	list, err := r.store.ListPredicate(ctx, namespace.Requested(user), nil)
	if err != nil {
		return 0, err
	}
	return meta.LenList(list), nil
}
