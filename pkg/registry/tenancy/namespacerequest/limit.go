// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespacerequest

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/storage/transaction"
)

// limit is the limit of Namespaces that a user may have requested.
type limit struct {
	max        int // 0 means no limit
	namespaces Namespaces
	guards     transaction.Guards
}

// check returns the guard for a transaction that creates one more Namespace, or
// Forbidden if the user has reached the limit.
//
// The guard belongs to the user, is read before the Namespaces are counted, and is
// written by each request. So a transaction with it is carried out only if the user has
// requested no other Namespace since the count.
func (l limit) check(ctx context.Context, name, user string) (*transaction.Guard, error) {
	if l.max == 0 {
		return nil, nil
	}
	guard, err := l.guards.Guard(ctx, "namespacerequests/"+user)
	if err != nil {
		return nil, err
	}
	count, err := l.namespaces.CountRequested(ctx, user)
	if err != nil {
		return nil, err
	}
	if count >= l.max {
		return nil, l.newReached(name, user, count)
	}
	return guard, nil
}

func (l limit) newReached(name, user string, count int) error {
	message := fmt.Sprintf("user %q has reached the limit of namespaces created by namespacerequests: %d of %d", user, count, l.max)
	err := apierrors.NewForbidden(tenancy.Resource("namespacerequests"), name, errors.New(message))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: v1.NamespaceLimitCause, Message: message})
	return err
}
