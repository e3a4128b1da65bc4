// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespacelifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	clienttesting "k8s.io/client-go/testing"

	boroughadmission "github.com/borough-io/borough/pkg/admission"
	"github.com/borough-io/borough/pkg/admission/namespacelifecycle"
	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned/fake"
)

// cached is a cache with at most one Namespace.
type cached struct{ namespace *v1.Namespace }

func (c cached) CachedPhase(_ context.Context, name string) (tenancy.NamespacePhase, bool) {
	if c.namespace == nil || c.namespace.Name != name {
		return "", false
	}
	return tenancy.NamespacePhase(c.namespace.Status.Phase), true
}

// initialize makes the plugin as the server does.
func initialize(cache boroughadmission.NamespaceCache, client versioned.Interface) (admission.Interface, error) {
	plugins := admission.NewPlugins()
	namespacelifecycle.Register(plugins)
	return plugins.InitPlugin(namespacelifecycle.PluginName, nil,
		admission.PluginInitializers{&boroughadmission.Initializer{Client: client, Namespaces: cache}})
}

// newPlugin makes a plugin whose cache may differ from what is in storage.
func newPlugin(t *testing.T, inCache *v1.Namespace, storage versioned.Interface) admission.MutationInterface {
	t.Helper()
	plugin, err := initialize(cached{inCache}, storage)
	if err != nil {
		t.Fatal(err)
	}
	return plugin.(admission.MutationInterface)
}

func namespace(phase v1.NamespacePhase) *v1.Namespace {
	return &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}, Status: v1.NamespaceStatus{Phase: phase}}
}

// request makes the attributes of a request for "x" of a kind.
func request(operation admission.Operation, kind, namespace, subresource string) admission.Attributes {
	return requestFor("x", operation, kind, namespace, subresource)
}

func requestFor(name string, operation admission.Operation, kind, namespace, subresource string) admission.Attributes {
	return admission.NewAttributesRecord(nil, nil, v1.SchemeGroupVersion.WithKind(kind), namespace, name,
		v1.SchemeGroupVersion.WithResource(strings.ToLower(kind)+"s"), subresource, operation, nil, false, nil)
}

func TestAdmit(t *testing.T) {
	const (
		create, update, remove = admission.Create, admission.Update, admission.Delete

		terminating = `is forbidden: unable to create new content in namespace ns because it is being terminated`
		notFound    = `namespaces.tenancy.borough.io "ns" not found`
	)
	active, terminated := namespace(v1.NamespaceActive), namespace(v1.NamespaceTerminating)

	for name, test := range map[string]struct {
		request        admission.Attributes
		cached, stored *v1.Namespace // nil is absent
		want           string        // is admitted when empty
		lookups        int           // reads of storage
	}{
		"create in an active namespace":                        {request: request(create, "Pod", "ns", ""), cached: active, stored: active},
		"create of a subresource":                              {request: request(create, "Binding", "ns", "binding"), cached: active, stored: active},
		"create in a terminating namespace":                    {request: request(create, "Pod", "ns", ""), cached: terminated, stored: terminated, want: `pods.tenancy.borough.io "x" ` + terminating, lookups: 1},
		"create in no namespace":                               {request: request(create, "LimitRange", "ns", ""), want: notFound, lookups: 1},
		"create just after its namespace":                      {request: request(create, "Pod", "ns", ""), stored: active, lookups: 1},
		"create just after its namespace goes":                 {request: request(create, "Pod", "ns", ""), stored: terminated, want: `pods.tenancy.borough.io "x" ` + terminating, lookups: 1},
		"create in a namespace that is new under an old name":  {request: request(create, "Pod", "ns", ""), cached: terminated, stored: active, lookups: 1},
		"create in a namespace that has just gone":             {request: request(create, "Pod", "ns", ""), cached: terminated, want: notFound, lookups: 1},
		"create in a namespace that is active to the cache":    {request: request(create, "Pod", "ns", ""), cached: active, stored: terminated}, // storage rejects it
		"update in an active namespace":                        {request: request(update, "Pod", "ns", ""), cached: active, stored: active},
		"update in a terminating namespace":                    {request: request(update, "Pod", "ns", ""), cached: terminated, stored: terminated},
		"update in a terminating namespace that is not cached": {request: request(update, "Pod", "ns", "status"), stored: terminated, lookups: 1},
		"update in no namespace":                               {request: request(update, "Pod", "ns", ""), want: notFound, lookups: 1},
		"delete in a terminating namespace":                    {request: request(remove, "Pod", "ns", ""), cached: terminated, stored: terminated},
		"purge of a terminating namespace":                     {request: request(create, "NamespacePurge", "ns", ""), cached: terminated, stored: terminated},
		"delete in no namespace":                               {request: request(remove, "Pod", "ns", "")},
		"review of the rights in no namespace": {request: admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{Group: "authorization.k8s.io", Version: "v1", Kind: "LocalSubjectAccessReview"}, "ns", "",
			schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "localsubjectaccessreviews"}, "", create, nil, false, nil)},
		"cluster-scoped": {request: request(create, "Cluster", "", "")},

		"create a namespace":                            {request: requestFor("ns", create, "Namespace", "", "")},
		"create a namespace, in itself":                 {request: requestFor("ns", create, "Namespace", "ns", "")},
		"update a terminating namespace":                {request: requestFor("ns", update, "Namespace", "", "finalize"), cached: terminated, stored: terminated},
		"update a terminating namespace, in itself":     {request: requestFor("ns", update, "Namespace", "ns", "finalize"), cached: terminated, stored: terminated},
		"create, in a terminating namespace's finalize": {request: requestFor("ns", create, "Namespace", "ns", "finalize"), cached: terminated, stored: terminated},
		"delete a namespace":                            {request: requestFor("ns", remove, "Namespace", "", "")},
		"delete default":                                {request: requestFor("default", remove, "Namespace", "", ""), want: `namespaces.tenancy.borough.io "default" is forbidden: this namespace may not be deleted`},
		"delete default, in itself":                     {request: requestFor("default", remove, "Namespace", "default", ""), want: `namespaces.tenancy.borough.io "default" is forbidden: this namespace may not be deleted`},
		"delete kube-system":                            {request: requestFor("kube-system", remove, "Namespace", "", ""), want: `namespaces.tenancy.borough.io "kube-system" is forbidden: this namespace may not be deleted`},
		"delete kube-public":                            {request: requestFor("kube-public", remove, "Namespace", "", ""), want: `namespaces.tenancy.borough.io "kube-public" is forbidden: this namespace may not be deleted`},
		"delete a pod that is called default":           {request: requestFor("default", remove, "Pod", "ns", ""), cached: active},
		"update default":                                {request: requestFor("default", update, "Namespace", "", "")},
	} {
		t.Run(name, func(t *testing.T) {
			var stored []runtime.Object
			if test.stored != nil {
				stored = append(stored, test.stored)
			}
			storage := fake.NewClientset(stored...)
			plugin := newPlugin(t, test.cached, storage)
			if operation := test.request.GetOperation(); !plugin.Handles(operation) {
				t.Fatalf("the plugin is not asked about %s", operation)
			}
			err := plugin.Admit(t.Context(), test.request, nil)
			if got := message(err); got != test.want {
				t.Errorf("\n got %q\nwant %q", got, test.want)
			}
			if got := len(storage.Actions()); got != test.lookups {
				t.Errorf("storage was read %d times, not %d", got, test.lookups)
			}
		})
	}
}

// TestNewNamespace creates content in one request with its Namespace.
func TestNewNamespace(t *testing.T) {
	plugin := newPlugin(t, nil, fake.NewClientset())
	ctx := boroughadmission.WithPendingNamespace(t.Context(), &metav1.ObjectMeta{Name: "ns"})
	if err := plugin.Admit(ctx, request(admission.Create, "Pod", "ns", ""), nil); err != nil {
		t.Errorf("in the new namespace: %v", err)
	}
	if err := plugin.Admit(ctx, request(admission.Create, "Pod", "other", ""), nil); !apierrors.IsNotFound(err) {
		t.Errorf("in another namespace: %v", err)
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestStatusOfRefusals(t *testing.T) {
	t.Run("terminating", func(t *testing.T) {
		terminating := namespace(v1.NamespaceTerminating)
		plugin := newPlugin(t, terminating, fake.NewClientset(terminating))
		err := plugin.Admit(t.Context(), request(admission.Create, "Pod", "ns", ""), nil)
		if !apierrors.IsForbidden(err) || !apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause) {
			t.Fatalf("got %v", err)
		}
		var status apierrors.APIStatus
		errors.As(err, &status)
		want := []metav1.StatusCause{{
			Type:    "NamespaceTerminating",
			Message: "namespace ns is being terminated",
			Field:   "metadata.namespace",
		}}
		if diff := cmp.Diff(want, status.Status().Details.Causes); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
	t.Run("names", func(t *testing.T) {
		terminating := namespace(v1.NamespaceTerminating)
		plugin := newPlugin(t, terminating, fake.NewClientset(terminating))
		for want, attributes := range map[string]struct {
			name   string
			object metav1.ObjectMeta
		}{
			"x":       {"x", metav1.ObjectMeta{Name: "x"}},
			"web-":    {"", metav1.ObjectMeta{GenerateName: "web-"}},
			"Unknown": {"", metav1.ObjectMeta{}},
		} {
			err := plugin.Admit(t.Context(), admission.NewAttributesRecord(&v1.Pod{ObjectMeta: attributes.object}, nil, v1.SchemeGroupVersion.WithKind("Pod"), "ns", attributes.name,
				v1.SchemeGroupVersion.WithResource("pods"), "", admission.Create, nil, false, nil), nil)
			if want = fmt.Sprintf("pods.tenancy.borough.io %q is forbidden", want); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		}
	})
	t.Run("not found", func(t *testing.T) {
		err := newPlugin(t, nil, fake.NewClientset()).Admit(t.Context(), request(admission.Create, "Pod", "ns", ""), nil)
		if !apierrors.IsNotFound(err) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("storage fails", func(t *testing.T) {
		storage := fake.NewClientset()
		storage.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("out of order")
		})
		err := newPlugin(t, nil, storage).Admit(t.Context(), request(admission.Create, "Pod", "ns", ""), nil)
		if want := "Internal error occurred: look up namespace ns: out of order"; !apierrors.IsInternalError(err) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})
}

// TestUnreadableNamespace shows that the content of a Namespace that cannot be read can
// be updated and deleted, but not created.
func TestUnreadableNamespace(t *testing.T) {
	storage := fake.NewClientset()
	storage.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, &apierrors.StatusError{ErrStatus: metav1.Status{Code: 500, Reason: metav1.StatusReasonStoreReadError, Message: "it cannot be read"}}
	})
	plugin := newPlugin(t, nil, storage)
	for operation, want := range map[admission.Operation]string{
		admission.Create: "Internal error occurred: look up namespace ns: it cannot be read",
		admission.Update: "",
		admission.Delete: "",
	} {
		if got := message(plugin.Admit(t.Context(), request(operation, "Pod", "ns", ""), nil)); got != want {
			t.Errorf("%s:\n got %q\nwant %q", operation, got, want)
		}
	}
}

func TestValidateInitialization(t *testing.T) {
	if _, err := initialize(cached{}, nil); err == nil || !strings.Contains(err.Error(), "missing the client") {
		t.Errorf("without a client: %v", err)
	}
	if _, err := initialize(nil, fake.NewClientset()); err == nil || !strings.Contains(err.Error(), "missing the cache of namespaces") {
		t.Errorf("without a cache: %v", err)
	}
}
