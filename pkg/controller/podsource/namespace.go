// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package podsource

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/source"
)

// role is the name of the ClusterRole, and of the RoleBinding in a Namespace that was
// requested, with the rights that a source needs in its Namespace.
const role = "borough-source"

// ensureNamespace returns the Namespace when it exists and is not being deleted. It creates
// it if it is missing.
func (c *Controller) ensureNamespace(ctx context.Context) (namespace *v1.Namespace, err error) {
	logger := klog.FromContext(ctx)
	last := ""
	backoff := newBackoff()
	for {
		if namespace, err = c.getOrCreateNamespace(ctx); err == nil && namespace.DeletionTimestamp == nil {
			return namespace, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		reason := "it is being deleted"
		var next time.Time
		if err == nil {
			// The Namespace is not gone until it is confirmed that its Pods have ended.
			next, err = c.deletePods(ctx, namespace.UID)
		}
		if err != nil {
			reason = message(err)
		}
		if reason != last {
			logger.Info("Waiting for the Namespace", "reason", reason)
			last = reason
		}
		delay := backoff.Step()
		if !next.IsZero() {
			delay = min(delay, time.Until(next))
		}
		if c.awaitChange(ctx, namespace, delay) {
			backoff = newBackoff()
		}
	}
}

// newBackoff returns the delays between attempts.
func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: retryBaseDelay, Factor: 2, Jitter: 0.1, Steps: 100, Cap: retryMaxDelay}
}

// awaitChange returns when the Namespace changes, after the delay at the latest. It reports
// whether the Namespace has changed.
func (c *Controller) awaitChange(ctx context.Context, namespace *v1.Namespace, delay time.Duration) bool {
	var changes <-chan watch.Event
	if namespace != nil {
		watcher, err := c.tenancy.TenancyV1().Namespaces().Watch(ctx, metav1.ListOptions{
			ResourceVersion: namespace.ResourceVersion,
			FieldSelector:   fields.OneTermEqualSelector(metav1.ObjectNameField, c.namespace).String(),
		})
		if err == nil {
			defer watcher.Stop()
			changes = watcher.ResultChan()
		}
	}
	after := time.After(delay)
	for {
		select {
		case event, ok := <-changes:
			if ok && event.Type != watch.Error {
				return true
			}
			changes = nil // a server that restarts ends each watch at once
		case <-after:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// getOrCreateNamespace returns the Namespace, which may be being deleted, or an error.
func (c *Controller) getOrCreateNamespace(ctx context.Context) (*v1.Namespace, error) {
	client := c.tenancy.TenancyV1()
	namespace, err := client.Namespaces().Get(ctx, c.namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		namespace, err = c.createNamespace(ctx)
	}
	if err != nil {
		return nil, err
	}
	if requester := namespace.Annotations[v1.RequesterAnnotation]; requester != "" && namespace.DeletionTimestamp == nil {
		if err := c.acceptRequested(ctx, requester); err != nil {
			return nil, err
		}
	}
	return namespace, nil
}

func (c *Controller) createNamespace(ctx context.Context) (*v1.Namespace, error) {
	client := c.tenancy.TenancyV1()
	meta := metav1.ObjectMeta{Name: c.namespace, Labels: map[string]string{source.Label: c.source.ID()}}
	options := metav1.CreateOptions{FieldManager: c.fieldManager}
	created, err := client.Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: meta}, options)
	if err == nil || !apierrors.IsForbidden(err) {
		return created, err
	}
	// A user without the right to create Namespaces can request one.
	_, requestErr := client.NamespaceRequests().Create(ctx, &v1.NamespaceRequest{ObjectMeta: meta}, options)
	switch {
	case apierrors.IsNotFound(requestErr):
		return nil, err // the server does not serve requests
	case requestErr != nil:
		return nil, fmt.Errorf("%w; request the Namespace: %w", err, requestErr)
	}
	return client.Namespaces().Get(ctx, c.namespace, metav1.GetOptions{})
}

// acceptRequested prepares a Namespace that a user has requested. If that is the user of the
// controller, it binds the role. In a Namespace of another user, the controller has the rights
// that were given to it. If such a Namespace has the name of the source, acceptRequested
// returns an error: everyone can compute that name, and its admin would see the Pods.
func (c *Controller) acceptRequested(ctx context.Context, requester string) error {
	self, err := c.kubernetes.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("get the user of the source: %w", err)
	}
	switch user := self.Status.UserInfo.Username; {
	case user == requester:
		return c.bindRole(ctx, user)
	case c.config.Namespace == "":
		return fmt.Errorf("the Namespace %s was requested by %q, and this is %q: delete it, or use it with --namespace", c.namespace, requester, user)
	}
	return nil
}

// bindRole gives the user of the controller, which is an admin of the Namespace, the rights
// that an admin does not have.
func (c *Controller) bindRole(ctx context.Context, user string) error {
	_, err := c.kubernetes.RbacV1().RoleBindings(c.namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}, metav1.CreateOptions{FieldManager: c.fieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("bind the role %s: %w", role, err)
	}
	return nil
}
