// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/pkg/authfailure"
	"github.com/borough-io/borough/pkg/authorization/revocation"
)

// Rights are what users hold.
type Rights interface {
	// ConfirmHeld returns an error that names the rights of the rules that the user
	// of the request does not hold in the namespace of the request.
	ConfirmHeld(ctx context.Context, rules []rbacv1.PolicyRule) error
	// ConfirmRoleHeld does the same for the rules of a role. It returns NotFound if
	// there is no such role.
	ConfirmRoleHeld(ctx context.Context, ref rbacv1.RoleRef) error
}

// AwaitCurrentFunc waits until the rights follow all that was written to etcd before the
// call.
type AwaitCurrentFunc func(ctx context.Context) error

// escalation prevents users from granting rights that they do not hold, by the rules
// of pkg/registry/rbac in Kubernetes. The verb escalate on a role and the verb bind on
// the role of a binding lift that.
type escalation struct {
	authorizer authorizer.UnconditionalAuthorizer
	rights     Rights
	// awaitCurrent is called first, as Kubernetes reads these rights from etcd: another
	// server may have revoked some, or created the role that is bound.
	awaitCurrent AwaitCurrentFunc
}

// unlessExempt returns a confirmFunc that calls confirm, with current rights, unless the write
// needs no confirmation.
func (e escalation) unlessExempt(confirm confirmFunc) confirmFunc {
	return func(ctx context.Context, obj, old runtime.Object) error {
		if isPrivileged(ctx) || changesForGarbageCollectionOnly(obj, old) {
			return nil
		}
		if err := e.awaitCurrent(ctx); err != nil {
			return newNotCurrent("nothing was written, because this server does not have the current RBAC objects yet", err)
		}
		return confirm(ctx, obj, old)
	}
}

func newNotCurrent(text string, err error) error {
	return apierrors.NewTimeoutError(fmt.Sprintf("%s: %v", text, err), authfailure.RetryAfter)
}

// fullAuthority is what it takes to aggregate rules, because they can be any.
var fullAuthority = []rbacv1.PolicyRule{
	{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
	{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
}

func (e escalation) confirmRole(ctx context.Context, obj, _ runtime.Object) error {
	role := obj.(*rbacv1.Role)
	if e.mayEscalate(ctx) {
		return nil
	}
	if err := e.rights.ConfirmHeld(ctx, role.Rules); err != nil {
		return apierrors.NewForbidden(rbacv1.Resource("roles"), role.Name, err)
	}
	return nil
}

func (e escalation) confirmClusterRole(ctx context.Context, obj, old runtime.Object) error {
	role := obj.(*rbacv1.ClusterRole)
	if e.mayEscalate(ctx) {
		return nil
	}
	if err := e.rights.ConfirmHeld(ctx, role.Rules); err != nil {
		return apierrors.NewForbidden(rbacv1.Resource("clusterroles"), role.Name, err)
	}
	oldRole, _ := old.(*rbacv1.ClusterRole)
	if aggregates(role) || aggregates(oldRole) {
		if e.rights.ConfirmHeld(ctx, fullAuthority) != nil {
			return apierrors.NewForbidden(rbacv1.Resource("clusterroles"), role.Name, errors.New("must have cluster-admin privileges to use the aggregationRule"))
		}
	}
	return nil
}

func aggregates(role *rbacv1.ClusterRole) bool {
	return role != nil && role.AggregationRule != nil && len(role.AggregationRule.ClusterRoleSelectors) > 0
}

func (e escalation) confirmRoleBinding(ctx context.Context, obj, _ runtime.Object) error {
	binding := obj.(*rbacv1.RoleBinding)
	namespace, ok := request.NamespaceFrom(ctx)
	if !ok {
		return apierrors.NewBadRequest("namespace is required")
	}
	return e.confirmBinding(ctx, rbacv1.Resource("rolebindings"), binding.Name, namespace, binding.RoleRef)
}

func (e escalation) confirmClusterRoleBinding(ctx context.Context, obj, _ runtime.Object) error {
	binding := obj.(*rbacv1.ClusterRoleBinding)
	return e.confirmBinding(ctx, rbacv1.Resource("clusterrolebindings"), binding.Name, "", binding.RoleRef)
}

func (e escalation) confirmBinding(ctx context.Context, resource schema.GroupResource, name, namespace string, ref rbacv1.RoleRef) error {
	if e.mayBind(ctx, ref, namespace) {
		return nil
	}
	err := e.rights.ConfirmRoleHeld(ctx, ref)
	if err == nil || apierrors.ReasonForError(err) != "" {
		return err
	}
	return apierrors.NewForbidden(resource, name, err)
}

// ConfirmTemplate returns Forbidden unless the user of the request may write an object of
// another resource, which causes RoleBindings to the role in any Namespace. Without an
// old object it is created.
func (s Storage) ConfirmTemplate(ctx context.Context, resource schema.GroupResource, obj, old runtime.Object, ref rbacv1.RoleRef) error {
	confirm := s.escalation.unlessExempt(func(ctx context.Context, obj, _ runtime.Object) error {
		object, err := meta.Accessor(obj)
		if err != nil {
			return err
		}
		if ref.Kind == "Role" && !s.escalation.mayBind(ctx, ref, "") {
			return apierrors.NewForbidden(resource, object.GetName(), fmt.Errorf("the rights of Role %q can differ in each namespace, so binding it needs the verb bind on roles in all namespaces", ref.Name))
		}
		return s.escalation.confirmBinding(ctx, resource, object.GetName(), "", ref)
	})
	return confirm(ctx, obj, old)
}

// isPrivileged reports whether the user may do everything, regardless of the policy.
func isPrivileged(ctx context.Context) bool {
	u, ok := request.UserFrom(ctx)
	return ok && revocation.IsPrivileged(u)
}

// mayEscalate reports whether the user may escalate the role of the request.
func (e escalation) mayEscalate(ctx context.Context) bool {
	info, ok := request.RequestInfoFrom(ctx)
	// A role can be written only by a request for it.
	if !ok || !info.IsResourceRequest || info.APIGroup != rbacv1.GroupName || info.Resource != "roles" && info.Resource != "clusterroles" {
		return false
	}
	return e.allowed(ctx, authorizer.AttributesRecord{
		Verb: "escalate", APIGroup: info.APIGroup, Resource: info.Resource, Name: info.Name, Namespace: info.Namespace,
	})
}

// mayBind reports whether the user may bind the role in the namespace, or everywhere if
// there is none.
func (e escalation) mayBind(ctx context.Context, ref rbacv1.RoleRef, namespace string) bool {
	resource := map[string]string{"Role": "roles", "ClusterRole": "clusterroles"}[ref.Kind]
	return resource != "" && e.allowed(ctx, authorizer.AttributesRecord{
		Verb: "bind", APIGroup: ref.APIGroup, Resource: resource, Name: ref.Name, Namespace: namespace,
	})
}

func (e escalation) allowed(ctx context.Context, attributes authorizer.AttributesRecord) bool {
	u, ok := request.UserFrom(ctx)
	if !ok {
		return false
	}
	attributes.User, attributes.APIVersion, attributes.ResourceRequest = u, "*", true
	decision, _, err := e.authorizer.Authorize(ctx, attributes)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Failed to authorize", "user", u.GetName(), "verb", attributes.Verb, "resource", attributes.Resource, "name", attributes.Name)
	}
	return decision == authorizer.DecisionAllow
}

// changesForGarbageCollectionOnly reports whether an update changes only finalizers and
// owner references, with which a garbage collector deletes the object.
func changesForGarbageCollectionOnly(obj, old runtime.Object) bool {
	if old == nil {
		return false
	}
	obj = obj.DeepCopyObject()
	// What was read from a request has its kind, what was read from etcd has none.
	obj.GetObjectKind().SetGroupVersionKind(old.GetObjectKind().GroupVersionKind())
	updated, err := meta.Accessor(obj)
	if err != nil {
		return false
	}
	stored, err := meta.Accessor(old)
	if err != nil {
		return false
	}
	updated.SetOwnerReferences(stored.GetOwnerReferences())
	updated.SetFinalizers(stored.GetFinalizers())
	updated.SetSelfLink(stored.GetSelfLink())
	updated.SetManagedFields(stored.GetManagedFields())
	return equality.Semantic.DeepEqual(updated, stored)
}
