// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package content creates the initial content of Namespaces, in the transactions that
// create these.
//
// A Source decides on the content by the Namespace, when that is about to be written. It
// may decide by a cache: the transaction is carried out only if a condition holds, and
// otherwise, or if the Namespace would be refused, the source decides again by what is
// stored.
package content

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	boroughadmission "github.com/borough-io/borough/pkg/admission"
	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/registry/create"
	"github.com/borough-io/borough/pkg/storage/transaction"
)

// Content is what a Namespace is created with. Each object may be nil.
type Content struct {
	// Origin says in errors what has decided on the content.
	Origin string

	LimitRange    *tenancy.LimitRange
	ResourceQuota *tenancy.ResourceQuota
	RoleBinding   *rbacv1.RoleBinding

	// Condition is what the decision is based on. It may be nil.
	Condition *transaction.Condition
}

// Source decides on the content of new Namespaces.
type Source interface {
	// For returns the content of a Namespace. It decides by what is stored at the time of
	// the call if fresh is true, and otherwise by what is cached. An error is that of the
	// Namespace.
	For(ctx context.Context, ns *tenancy.Namespace, fresh bool) (Content, error)
}

// Storage creates the objects. It does not ask whether the user may.
type Storage struct {
	LimitRanges, ResourceQuotas rest.Creater
	// RoleBindings is nil if the server has no policy.
	RoleBindings rest.Creater
}

// Creator creates the content of Namespaces: as in a POST by the user who creates the
// Namespace, but without asking whether the user may create the objects.
type Creator struct {
	source                                    Source
	limitRanges, resourceQuotas, roleBindings *create.Creator
}

// NewCreator returns a Creator.
func NewCreator(config create.Config, source Source, storage Storage) (_ *Creator, err error) {
	c := &Creator{source: source}
	if c.limitRanges, err = create.New(config, storage.LimitRanges, v1.SchemeGroupVersion.WithKind("LimitRange"), "limitranges"); err != nil {
		return nil, err
	}
	if c.resourceQuotas, err = create.New(config, storage.ResourceQuotas, v1.SchemeGroupVersion.WithKind("ResourceQuota"), "resourcequotas"); err != nil {
		return nil, err
	}
	if storage.RoleBindings != nil {
		if c.roleBindings, err = create.New(config, storage.RoleBindings, rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), "rolebindings"); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Begin returns the context and the validation for a create of a Namespace with its
// content.
func (c *Creator) Begin(ctx context.Context, validate rest.ValidateObjectFunc) (context.Context, rest.ValidateObjectFunc) {
	attempt := &attempt{creator: c}
	return transaction.With(ctx, attempt.plan), func(ctx context.Context, obj runtime.Object) error {
		if err := validate(ctx, obj); err != nil {
			return err
		}
		attempt.namespace = obj.(*tenancy.Namespace) // as it will be written
		return nil
	}
}

// attempt is an attempt to create a Namespace.
type attempt struct {
	creator   *Creator
	namespace *tenancy.Namespace
	fresh     bool
}

// plan implements transaction.Planner.
func (a *attempt) plan(ctx context.Context) (transaction.Plan, error) {
	plan := transaction.Plan{Provisional: !a.fresh}
	content, err := a.creator.source.For(ctx, a.namespace, a.fresh)
	a.fresh = true // if it is planned again
	if err != nil {
		return plan, err
	}
	plan.Condition = content.Condition
	plan.Renew = func(ctx context.Context) (*transaction.Condition, error) {
		again, err := a.creator.source.For(ctx, a.namespace, true)
		if err != nil || again.Condition == nil || content.Condition == nil ||
			again.Condition.Key != content.Condition.Key || again.Condition.KeyRevision != content.Condition.KeyRevision {
			return nil, err
		}
		return again.Condition, nil
	}
	plan.Creates = a.creator.creates(a.namespace, content, nil)
	plan.Explain = func(err error) error { return newRefused(a.namespace, content.Origin, err) }
	return plan, nil
}

// DryRun does what Begin prepares for a Namespace that was created in a dry run.
func (c *Creator) DryRun(ctx context.Context, ns *tenancy.Namespace) error {
	content, err := c.source.For(ctx, ns, true)
	if err != nil {
		return err
	}
	for _, create := range c.creates(ns, content, []string{metav1.DryRunAll}) {
		if err := create(ctx); err != nil {
			return newRefused(ns, content.Origin, err)
		}
	}
	return nil
}

// creates returns the functions that create the content of a Namespace.
func (c *Creator) creates(ns *tenancy.Namespace, content Content, dryRun []string) []func(context.Context) error {
	options := &metav1.CreateOptions{DryRun: dryRun}
	options.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("CreateOptions")) // webhooks and policies see it
	var creates []func(context.Context) error
	add := func(creator *create.Creator, obj object) {
		creates = append(creates, func(ctx context.Context) error {
			ctx = boroughadmission.WithPendingNamespace(ctx, &ns.ObjectMeta)
			_, err := creator.Create(ctx, obj, create.Options{CreateOptions: options, Manager: create.ServerManager}, nil)
			return err
		})
	}
	if content.LimitRange != nil {
		add(c.limitRanges, content.LimitRange)
	}
	if content.ResourceQuota != nil {
		add(c.resourceQuotas, content.ResourceQuota)
	}
	if content.RoleBinding != nil {
		if c.roleBindings == nil {
			creates = append(creates, func(context.Context) error { return errNoRights })
		} else {
			add(c.roleBindings, content.RoleBinding)
		}
	}
	return creates
}

type object interface {
	runtime.Object
	metav1.Object
}
