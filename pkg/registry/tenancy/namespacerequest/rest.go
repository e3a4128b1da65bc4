// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namespacerequest serves namespacerequests. Creating a NamespaceRequest
// creates a Namespace, and in it a RoleBinding that makes the user of the request its
// admin, in one transaction; the request itself is not stored.
//
// Both objects are created as by a POST of them: admission, validation, field managers
// and dry runs are the same. The user needs no right to create either.
package namespacerequest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"

	boroughadmission "github.com/borough-io/borough/pkg/admission"
	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/apis/tenancy/validation"
	"github.com/borough-io/borough/pkg/registry/create"
	"github.com/borough-io/borough/pkg/registry/table"
	"github.com/borough-io/borough/pkg/registry/tenancy/namespace"
	"github.com/borough-io/borough/pkg/requestlimits"
	"github.com/borough-io/borough/pkg/storage/transaction"
)

// Namespaces creates and counts Namespaces.
type Namespaces interface {
	rest.Creater
	rest.ResetFieldsStrategy
	// CountRequested returns how many Namespaces that the user has requested exist at
	// the time of the call or later.
	CountRequested(ctx context.Context, user string) (int, error)
}

// Config is what a REST needs.
type Config struct {
	// Create is how both objects are created.
	Create create.Config
	// Namespaces and RoleBindings create the objects. They do not ask whether the user
	// may.
	Namespaces   Namespaces
	RoleBindings rest.Creater
	// Guards are those of the storage of both objects.
	Guards transaction.Guards
	// MaxPerUser is the number of Namespaces that a user may have requested. 0 means
	// no limit.
	MaxPerUser int
}

// REST serves namespacerequests.
type REST struct {
	rest.TableConvertor
	scheme                   *runtime.Scheme
	namespaces, roleBindings *create.Creator
	limit                    limit
}

var (
	_ rest.Creater              = &REST{}
	_ rest.Scoper               = &REST{}
	_ rest.SingularNameProvider = &REST{}
	_ rest.TableConvertor       = &REST{}
)

// NewREST returns a REST.
func NewREST(config Config) (*REST, error) {
	namespaces, err := create.New(config.Create, config.Namespaces, v1.SchemeGroupVersion.WithKind("Namespace"), "namespaces")
	if err != nil {
		return nil, err
	}
	roleBindings, err := create.New(config.Create, config.RoleBindings, rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), "rolebindings")
	if err != nil {
		return nil, err
	}
	columns := []metav1.TableColumnDefinition{
		table.NameColumn(),
		{Name: "Role Binding", Type: "string", Description: "The RoleBinding that makes the requester the admin of the namespace."},
	}
	return &REST{
		TableConvertor: table.NewConvertor(columns, func(r *tenancy.NamespaceRequest) ([]any, []metav1.TableRowCondition) {
			return []any{r.Name, r.Status.RoleBinding}, nil
		}),
		scheme:       config.Create.Scheme,
		namespaces:   namespaces,
		roleBindings: roleBindings,
		limit:        limit{config.MaxPerUser, config.Namespaces, config.Guards},
	}, nil
}

// New returns an empty NamespaceRequest.
func (r *REST) New() runtime.Object { return &tenancy.NamespaceRequest{} }

// Destroy does nothing, since nothing is stored.
func (r *REST) Destroy() {}

// NamespaceScoped returns false.
func (r *REST) NamespaceScoped() bool { return false }

// GetSingularName returns the singular name of the resource.
func (r *REST) GetSingularName() string { return "namespacerequest" }

// Create creates the Namespace and the RoleBinding, and returns the NamespaceRequest
// with the name and the status. In a dry run nothing is created.
//
// It returns AlreadyExists if the Namespace exists, and Forbidden with
// NamespaceLimitCause if the user has as many Namespaces as a user may request.
func (r *REST) Create(ctx context.Context, obj runtime.Object, createValidation rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	wanted, ok := obj.(*tenancy.NamespaceRequest)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("create a namespace request: got %T", obj))
	}
	requester, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewInternalError(errors.New("create a namespace request: the request has no user"))
	}
	if !utf8.ValidString(requester.GetName()) {
		// JSON would change the name in the Namespace, where it is immutable.
		return nil, apierrors.NewBadRequest("the name of the user is not encoded as UTF-8")
	}
	manager := fieldManager(options, wanted)
	wanted.ManagedFields = nil // they mean nothing on an object that is not stored
	wanted.Status = tenancy.NamespaceRequestStatus{}
	if errs := validation.ValidateNamespaceRequest(wanted); len(errs) > 0 {
		return nil, apierrors.NewInvalid(tenancy.Kind("NamespaceRequest"), wanted.Name, requestlimits.LimitErrors(errs))
	}
	if err := createValidation(ctx, wanted.DeepCopy()); err != nil {
		return nil, err
	}
	for {
		guard, err := r.limit.check(ctx, wanted.Name, requester.GetName())
		if err != nil {
			return nil, err
		}
		created, err := r.create(ctx, wanted, requester, guard, create.Options{CreateOptions: options, Manager: manager})
		if errors.Is(err, transaction.ErrGuardChanged) {
			continue // the user has requested another Namespace since they were counted
		}
		if err != nil {
			return nil, err
		}
		wanted.Name, wanted.CreationTimestamp = created.Name, created.CreationTimestamp
		wanted.Status = tenancy.NamespaceRequestStatus{NamespaceUID: created.UID, RoleBinding: validation.RequestedRoleBinding}
		return wanted, nil
	}
}

// fieldManager returns the field manager of a request.
func fieldManager(options *metav1.CreateOptions, request *tenancy.NamespaceRequest) string {
	// The library has added the client to the request, if it has any fields.
	var client string
	if fields := request.ManagedFields; len(fields) > 0 {
		client = fields[len(fields)-1].Manager
	}
	return cmp.Or(options.FieldManager, client, create.ServerManager)
}

// create creates the Namespace and the RoleBinding.
func (r *REST) create(ctx context.Context, wanted *tenancy.NamespaceRequest, requester user.Info, guard *transaction.Guard, options create.Options) (*tenancy.Namespace, error) {
	ns, err := r.newNamespace(wanted)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	var name string // as it was generated
	createRoleBinding := func(ctx context.Context) error {
		binding := newRoleBinding(name, requester)
		_, err := r.roleBindings.Create(boroughadmission.WithPendingNamespace(ctx, &metav1.ObjectMeta{Name: name}), binding, options, nil)
		return err
	}
	nsCtx := namespace.WithRequester(ctx, requester.GetName())
	dryRun := dryrun.IsDryRun(options.DryRun)
	if !dryRun {
		nsCtx = transaction.With(nsCtx, func(context.Context) (transaction.Plan, error) {
			return transaction.Plan{Guard: guard, Creates: []func(context.Context) error{createRoleBinding}}, nil
		})
	}
	created, err := r.namespaces.Create(nsCtx, ns, options, func(final string) { name = final })
	if err == nil && dryRun {
		err = createRoleBinding(ctx)
	}
	if err != nil {
		return nil, err
	}
	return created.(*tenancy.Namespace), nil
}

// newNamespace returns the Namespace, with the defaults that it has in a POST.
func (r *REST) newNamespace(wanted *tenancy.NamespaceRequest) (*tenancy.Namespace, error) {
	external := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:         wanted.Name,
		GenerateName: wanted.GenerateName,
		Labels:       wanted.Labels,
		Annotations:  wanted.Annotations,
	}}
	r.scheme.Default(external)
	ns := &tenancy.Namespace{}
	if err := r.scheme.Convert(external.DeepCopy(), ns, nil); err != nil {
		return nil, fmt.Errorf("convert a namespace: %w", err)
	}
	return ns, nil
}
