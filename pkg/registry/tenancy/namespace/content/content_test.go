// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package content_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	apiopenapi "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"

	boroughadmission "github.com/borough-io/borough/pkg/admission"
	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/openapi"
	"github.com/borough-io/borough/pkg/registry/create"
	"github.com/borough-io/borough/pkg/registry/registrytest"
	"github.com/borough-io/borough/pkg/registry/tenancy/namespace"
	"github.com/borough-io/borough/pkg/registry/tenancy/namespace/content"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/test/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// fixture is a storage of Namespaces with content. It is the source of that, and
// admission.
type fixture struct {
	t          *testing.T
	namespaces *namespace.REST
	etcd       *clientv3.Client
	ctx        context.Context

	decided []bool   // whether what is stored was asked for
	asked   []string // of admission
	// decide returns an error instead of the content, and refuse one of admission. They
	// may be nil.
	decide func(fresh bool) error
	refuse func(question string) error
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	member := storagetest.StartEmbedded(t)
	stores := registrytest.New(t, member)
	models := genericapiserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, apiopenapi.NewDefinitionNamer(stores.Scheme))
	types, err := create.NewTypes(models, &v1.LimitRange{}, &v1.ResourceQuota{})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, etcd: member.Client()}
	f.ctx = request.WithUser(request.WithNamespace(t.Context(), ""), &user.DefaultInfo{Name: "alice"})
	creator, err := content.NewCreator(create.Config{Scheme: stores.Scheme, Admission: f, Types: types}, content.WithDefaultLimits(f),
		content.Storage{LimitRanges: stores.LimitRanges, ResourceQuotas: stores.Quotas})
	if err != nil {
		t.Fatal(err)
	}
	backend := storagetest.NewBackend(t, storage.NewOptions(), storagetest.NewConfig(member))
	namespaces, err := namespace.NewStorage(stores.Scheme, backend, nil, creator)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(namespaces.Namespace.Destroy)
	f.namespaces = namespaces.Namespace
	return f
}

// For implements content.Source.
func (f *fixture) For(_ context.Context, ns *tenancy.Namespace, fresh bool) (content.Content, error) {
	f.decided = append(f.decided, fresh)
	if f.decide != nil {
		if err := f.decide(fresh); err != nil {
			return content.Content{}, err
		}
	}
	if ns.Labels["content"] == "" {
		return content.Content{}, nil
	}
	meta := metav1.ObjectMeta{Name: ns.Labels["content"], Namespace: ns.Name}
	return content.Content{Origin: "the test", LimitRange: &tenancy.LimitRange{ObjectMeta: meta}, ResourceQuota: &tenancy.ResourceQuota{ObjectMeta: meta}}, nil
}

// Handles implements admission.Interface.
func (f *fixture) Handles(admission.Operation) bool { return true }

// Admit implements admission.MutationInterface.
func (f *fixture) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	return f.ask(ctx, "admit", a)
}

// Validate implements admission.ValidationInterface.
func (f *fixture) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	return f.ask(ctx, "validate", a)
}

func (f *fixture) ask(ctx context.Context, what string, a admission.Attributes) error {
	question := what + " " + a.GetKind().Kind
	labels := boroughadmission.PendingNamespaceFrom(ctx).Labels
	options := a.GetOperationOptions().GetObjectKind().GroupVersionKind()
	f.asked = append(f.asked, fmt.Sprintf("%s %s/%s by %s, dry run %t, in a Namespace of %s, with %s", question, a.GetNamespace(), a.GetName(), a.GetUserInfo().GetName(), a.IsDryRun(), labels["content"], options))
	if f.refuse != nil {
		return f.refuse(question)
	}
	return nil
}

func (f *fixture) create(name, content string, dryRun bool) error {
	f.decided, f.asked = nil, nil
	options := &metav1.CreateOptions{}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	ns := &tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"content": content}}}
	_, err := f.namespaces.Create(f.ctx, ns, rest.ValidateAllObjectFunc, options)
	return err
}

// keys returns the keys of the Namespace and of what is in it.
func (f *fixture) keys(name string) (keys []string) {
	f.t.Helper()
	const prefix = "/registry/" + tenancy.GroupName + "/"
	response, err := f.etcd.Get(f.t.Context(), prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		f.t.Fatal(err)
	}
	for _, kv := range response.Kvs {
		key := strings.TrimPrefix(string(kv.Key), prefix)
		if strings.HasPrefix(key, "limitranges/"+name+"/") || strings.HasPrefix(key, "resourcequotas/"+name+"/") || key == "namespaces/"+name {
			keys = append(keys, key)
		}
	}
	return keys
}

func TestContent(t *testing.T) {
	f := newFixture(t)
	for _, dryRun := range []bool{true, false} {
		if err := f.create("a", "c", dryRun); err != nil {
			t.Fatal(err)
		}
		var want, keys []string
		for _, question := range []string{"admit LimitRange", "validate LimitRange", "admit ResourceQuota", "validate ResourceQuota"} {
			want = append(want, fmt.Sprintf("%s a/c by alice, dry run %t, in a Namespace of c, with meta.k8s.io/v1, Kind=CreateOptions", question, dryRun))
		}
		if diff := cmp.Diff(want, f.asked); diff != "" {
			t.Errorf("dry run %t: admission is asked (-want +got):\n%s", dryRun, diff)
		}
		if !dryRun {
			keys = []string{"limitranges/a/c", "namespaces/a", "resourcequotas/a/c"}
		}
		if diff := cmp.Diff(keys, f.keys("a")); diff != "" {
			t.Errorf("dry run %t: the keys (-want +got):\n%s", dryRun, diff)
		}
	}
	if err := f.create("empty", "", false); err != nil || len(f.keys("empty")) != 1 {
		t.Errorf("without content: %v, %v", err, f.keys("empty"))
	}
	if err := f.create("default", "", false); err != nil || cmp.Diff([]string{"limitranges/default/limits", "namespaces/default"}, f.keys("default")) != "" {
		t.Errorf("default: %v, %v", err, f.keys("default"))
	}
}

// TestRefused refuses the content. The decision is made again before the Namespace is
// refused.
func TestRefused(t *testing.T) {
	f := newFixture(t)
	forbidden := apierrors.NewForbidden(tenancy.Resource("things"), "x", errors.New("no"))
	for _, test := range []struct {
		question string
		err      error
		code     int32
		message  string
	}{
		{"admit LimitRange", forbidden, http.StatusForbidden, `namespaces.tenancy.borough.io "a" is forbidden: the test cannot be applied: things.tenancy.borough.io "x" is forbidden: no`},
		{"validate LimitRange", forbidden, http.StatusForbidden, "the test cannot be applied"},
		{"admit ResourceQuota", forbidden, http.StatusForbidden, "the test cannot be applied"},
		{"validate ResourceQuota", apierrors.NewInvalid(tenancy.Kind("Thing"), "x", nil), http.StatusForbidden, `the test cannot be applied: Thing.tenancy.borough.io "x" is invalid`},
		{"validate ResourceQuota", apierrors.NewTooManyRequests("later", 1), http.StatusTooManyRequests, "the test cannot be applied: later"},
		{"validate ResourceQuota", apierrors.NewTimeoutError("slow", 1), http.StatusGatewayTimeout, "the test cannot be applied: Timeout: slow"},
		{"validate ResourceQuota", errors.New("broken"), http.StatusInternalServerError, "the test cannot be applied: broken"},
	} {
		f.refuse = func(question string) error {
			if question == test.question {
				return test.err
			}
			return nil
		}
		for _, dryRun := range []bool{true, false} {
			err := f.create("a", "c", dryRun)
			var status apierrors.APIStatus
			if !errors.As(err, &status) || status.Status().Code != test.code || strings.Count(err.Error(), test.message) != 1 {
				t.Errorf("%s, dry run %t: got %v, want %d %s", test.question, dryRun, err, test.code, test.message)
			}
			if want := map[bool][]bool{true: {true}, false: {false, true}}[dryRun]; cmp.Diff(want, f.decided) != "" {
				t.Errorf("%s, dry run %t: decided by what is stored %v, want %v", test.question, dryRun, f.decided, want)
			}
			if keys := f.keys("a"); len(keys) > 0 {
				t.Errorf("%s, dry run %t: there are %v", test.question, dryRun, keys)
			}
		}
	}
	f.refuse = nil
	f.decide = func(fresh bool) error {
		if fresh {
			return nil
		}
		return errors.New("out of date")
	}
	if err := f.create("a", "c", false); err != nil || len(f.keys("a")) != 3 {
		t.Errorf("refused by what is out of date: %v, %v", err, f.keys("a"))
	}
	f.decide = func(bool) error { return forbidden }
	if err := f.create("a", "c", false); !apierrors.IsAlreadyExists(err) {
		t.Errorf("it exists: %v", err)
	}
	if err := f.create("b", "c", false); err == nil || err.Error() != forbidden.Error() {
		t.Errorf("got %v", err)
	}
}
