// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespacerequest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	apiopenapi "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/openapi"
	"github.com/borough-io/borough/pkg/registry/create"
	"github.com/borough-io/borough/pkg/registry/rbac"
	"github.com/borough-io/borough/pkg/registry/tenancy/namespace"
	"github.com/borough-io/borough/pkg/registry/tenancy/namespacerequest"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/pkg/storage/transaction"
	"github.com/borough-io/borough/test/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// fixture is a REST on an etcd. It records what admission is asked.
type fixture struct {
	*namespacerequest.REST
	t            *testing.T
	namespaces   *namespace.REST
	roleBindings *rbac.REST
	etcd         *clientv3.Client
	guards       transaction.Guards
	ctx          context.Context

	asked []string
	// refuse returns an error for what admission is asked, if it is set.
	refuse func(question string) error
	// readGuard is called after a guard is read, if it is set.
	readGuard func(*transaction.Guard)
}

func newFixture(t *testing.T, limit int) *fixture {
	t.Helper()
	member := storagetest.StartEmbedded(t)
	config := storagetest.NewStandaloneConfig(member)
	backend := storagetest.NewBackend(t, storage.NewOptions(), config)
	namespaces, err := namespace.NewStorage(config.Scheme, backend, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(namespaces.Namespace.Destroy)
	rights, err := rbac.NewStorage(config.Scheme, backend, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*rbac.REST{rights.Roles, rights.RoleBindings, rights.ClusterRoles, rights.ClusterRoleBindings} {
		t.Cleanup(r.Destroy)
		storagetest.WaitReady(t, r.Store)
	}
	models := genericapiserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, apiopenapi.NewDefinitionNamer(config.Scheme))
	types, err := create.NewTypes(models, &v1.Namespace{}, &rbacv1.RoleBinding{})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, namespaces: namespaces.Namespace, roleBindings: rights.RoleBindings, etcd: member.Client(), guards: backend}
	f.ctx = request.WithUser(request.WithNamespace(t.Context(), ""), &user.DefaultInfo{Name: "alice"})
	f.REST, err = namespacerequest.NewREST(namespacerequest.Config{
		Create:     create.Config{Scheme: config.Scheme, Admission: f, Types: types},
		Namespaces: f.namespaces, RoleBindings: f.roleBindings.Store,
		Guards: f, MaxPerUser: limit,
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Guard implements transaction.Guards.
func (f *fixture) Guard(ctx context.Context, name string) (*transaction.Guard, error) {
	guard, err := f.guards.Guard(ctx, name)
	if err == nil && f.readGuard != nil {
		f.readGuard(guard)
	}
	return guard, err
}

// Handles implements admission.Interface.
func (f *fixture) Handles(operation admission.Operation) bool { return operation == admission.Create }

// Admit implements admission.MutationInterface. It adds a label.
func (f *fixture) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	object, err := meta.Accessor(a.GetObject())
	if err != nil {
		return err
	}
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels["admitted"] = "yes"
	object.SetLabels(labels)
	return f.ask("admit", a)
}

// Validate implements admission.ValidationInterface.
func (f *fixture) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	return f.ask("validate", a)
}

func (f *fixture) ask(what string, a admission.Attributes) error {
	question := fmt.Sprintf("%s %s %s %s/%s", what, a.GetOperation(), a.GetResource().GroupResource(), a.GetNamespace(), a.GetName())
	f.asked = append(f.asked, fmt.Sprintf("%s %s by %s, dry run %t", question, a.GetKind().Kind, a.GetUserInfo().GetName(), a.IsDryRun()))
	if f.refuse != nil {
		return f.refuse(question)
	}
	return nil
}

// keys returns the keys of Namespaces and RoleBindings.
func (f *fixture) keys() (keys []string) {
	f.t.Helper()
	response, err := f.etcd.Get(f.t.Context(), "/registry/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		f.t.Fatal(err)
	}
	for _, kv := range response.Kvs {
		if key := string(kv.Key); strings.Contains(key, "/namespaces/") || strings.Contains(key, "/rolebindings/") {
			keys = append(keys, key)
		}
	}
	return keys
}

func newRequest(name string) *tenancy.NamespaceRequest {
	return &tenancy.NamespaceRequest{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func (f *fixture) create(request *tenancy.NamespaceRequest, options metav1.CreateOptions) (*tenancy.NamespaceRequest, error) {
	obj, err := f.Create(f.ctx, request, rest.ValidateAllObjectFunc, &options)
	if err != nil {
		return nil, err
	}
	return obj.(*tenancy.NamespaceRequest), nil
}

// TestAdmission shows what admission is asked, and that it can change and refuse both
// objects.
func TestAdmission(t *testing.T) {
	for _, dryRun := range []bool{true, false} {
		t.Run(fmt.Sprint("dry run ", dryRun), func(t *testing.T) {
			f := newFixture(t, 0)
			options := metav1.CreateOptions{}
			if dryRun {
				options.DryRun = []string{metav1.DryRunAll}
			}
			for _, refused := range []string{
				"admit CREATE namespaces.tenancy.borough.io /a", "validate CREATE namespaces.tenancy.borough.io /a",
				"admit CREATE rolebindings.rbac.authorization.k8s.io a/admin", "validate CREATE rolebindings.rbac.authorization.k8s.io a/admin",
			} {
				f.refuse = func(question string) error {
					if question == refused {
						return errors.New("refused: " + question)
					}
					return nil
				}
				if _, err := f.create(newRequest("a"), options); err == nil || err.Error() != "refused: "+refused {
					t.Errorf("%s: got %v", refused, err)
				}
				if keys := f.keys(); len(keys) > 0 {
					t.Fatalf("%s: there are %v", refused, keys)
				}
			}

			f.refuse, f.asked = nil, nil
			if _, err := f.create(newRequest("a"), options); err != nil {
				t.Fatal(err)
			}
			suffix := fmt.Sprintf(" by alice, dry run %t", dryRun)
			want := []string{
				"admit CREATE namespaces.tenancy.borough.io /a Namespace" + suffix,
				"validate CREATE namespaces.tenancy.borough.io /a Namespace" + suffix,
				"admit CREATE rolebindings.rbac.authorization.k8s.io a/admin RoleBinding" + suffix,
				"validate CREATE rolebindings.rbac.authorization.k8s.io a/admin RoleBinding" + suffix,
			}
			if diff := cmp.Diff(want, f.asked); diff != "" {
				t.Errorf("admission is asked (-want +got):\n%s", diff)
			}
			if dryRun {
				if keys := f.keys(); len(keys) > 0 {
					t.Errorf("there are %v", keys)
				}
				return
			}
			ns, binding := f.get("a")
			if ns.Labels["admitted"] != "yes" || binding.Labels["admitted"] != "yes" {
				t.Errorf("the labels are %v and %v", ns.Labels, binding.Labels)
			}
		})
	}
}

// get returns a Namespace and the RoleBinding in it.
func (f *fixture) get(name string) (*tenancy.Namespace, *rbacv1.RoleBinding) {
	f.t.Helper()
	ns, err := f.namespaces.Get(f.ctx, name, &metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	binding, err := f.roleBindings.Get(request.WithNamespace(f.ctx, name), "admin", &metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return ns.(*tenancy.Namespace), binding.(*rbacv1.RoleBinding)
}

// TestFieldManager shows who manages the fields of both objects.
func TestFieldManager(t *testing.T) {
	f := newFixture(t, 0)
	client := []metav1.ManagedFieldsEntry{{Manager: "client", Operation: metav1.ManagedFieldsOperationUpdate}}
	for name, test := range map[string]struct {
		options string
		fields  []metav1.ManagedFieldsEntry
		want    string
	}{
		"options": {"options", client, "options"},
		"client":  {"", client, "client"},
		"unknown": {"", nil, "borough-apiserver"},
	} {
		wanted := newRequest(name)
		wanted.ManagedFields = test.fields
		created, err := f.create(wanted, metav1.CreateOptions{FieldManager: test.options})
		if err != nil {
			t.Fatal(err)
		}
		if len(created.ManagedFields) > 0 {
			t.Errorf("%s: the response has managed fields", name)
		}
		ns, binding := f.get(name)
		for _, fields := range [][]metav1.ManagedFieldsEntry{ns.ManagedFields, binding.ManagedFields} {
			if len(fields) != 1 || fields[0].Manager != test.want || fields[0].Operation != metav1.ManagedFieldsOperationUpdate {
				t.Errorf("%s: got %v, want %s", name, fields, test.want)
			}
		}
	}
}

// TestNameOfAnotherEncoding requests a Namespace as a user whose name JSON would change.
func TestNameOfAnotherEncoding(t *testing.T) {
	f := newFixture(t, 0)
	f.ctx = request.WithUser(f.ctx, &user.DefaultInfo{Name: "j\xfcrgen"})
	if _, err := f.create(newRequest("a"), metav1.CreateOptions{}); !apierrors.IsBadRequest(err) {
		t.Errorf("got %v", err)
	}
}

// TestCountedAgain writes the guard of the user between the count and the transaction.
func TestCountedAgain(t *testing.T) {
	f := newFixture(t, 1)
	reads := 0
	f.readGuard = func(guard *transaction.Guard) {
		if reads++; reads > 3 {
			return
		}
		if _, err := f.etcd.Put(t.Context(), guard.Key, ""); err != nil {
			t.Error(err)
		}
	}
	created, err := f.create(&tenancy.NamespaceRequest{ObjectMeta: metav1.ObjectMeta{GenerateName: "a-"}}, metav1.CreateOptions{})
	if err != nil || !strings.HasPrefix(created.Name, "a-") || created.Status.NamespaceUID == "" {
		t.Fatalf("got %+v, %v", created, err)
	}
	if reads != 4 {
		t.Errorf("the guard was read %d times, want 4", reads)
	}
	if keys := f.keys(); len(keys) != 2 {
		t.Errorf("there are %v", keys)
	}
	// Another Namespace of the user appears between the two counts.
	f.ctx = request.WithUser(f.ctx, &user.DefaultInfo{Name: "bob"})
	f.readGuard = func(*transaction.Guard) {
		f.readGuard = nil
		if _, err := f.create(newRequest("first"), metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
	}
	if _, err := f.create(newRequest("second"), metav1.CreateOptions{}); !apierrors.HasStatusCause(err, v1.NamespaceLimitCause) {
		t.Errorf("got %v, want %s", err, v1.NamespaceLimitCause)
	}
}

func TestTable(t *testing.T) {
	f := newFixture(t, 0)
	created, err := f.create(newRequest("a"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	table, err := f.ConvertToTable(f.ctx, created, &metav1.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{"a", "admin"}, table.Rows[0].Cells); diff != "" || len(table.ColumnDefinitions) != 2 {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := f.Create(f.ctx, &tenancy.Namespace{}, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); !apierrors.IsInternalError(err) {
		t.Errorf("another kind: %v", err)
	}
	refuse := func(context.Context, runtime.Object) error { return errors.New("refused") }
	if _, err := f.Create(f.ctx, newRequest("b"), refuse, &metav1.CreateOptions{}); err == nil || err.Error() != "refused" || len(f.keys()) != 2 {
		t.Errorf("refused by admission of the request: %v", err)
	}
}
