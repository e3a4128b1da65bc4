// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespacepurge_test

import (
	"context"
	"fmt"
	"path"
	"strings"
	"sync"
	"testing"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/registry/deletecollection"
	"github.com/borough-io/borough/pkg/registry/registrytest"
	"github.com/borough-io/borough/pkg/registry/tenancy/namespacepurge"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/embedded"
	"github.com/borough-io/borough/test/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// purger is a Registry with namespacepurges. It records the warnings and what
// admission and the authorizer are asked.
type purger struct {
	*registrytest.Registry
	purges *namespacepurge.REST
	ctx    context.Context

	// admit decides on the DELETE of an object, if it is set.
	admit func(name string) error
	// admitFinalize decides on the UPDATE of namespaces/finalize, if it is set.
	admitFinalize func() error

	mu       sync.Mutex
	admitted []string
	asked    []string
	warnings []string
	// dryRun is whether the UPDATE of namespaces/finalize has to be a dry run.
	dryRun bool
	// operations are the operations that admission was asked about, in order.
	operations []string
}

// inNamespace replaces NS by the name of the Namespace.
func (p *purger) inNamespace(text string) string { return strings.Replace(text, "NS", p.Namespace, 1) }

// The ordinary user may create NamespacePurges, the admin may also force.
const (
	ordinaryUser = "user"
	admin        = "admin"
)

// newPurger returns a purger that lists two objects at a time. Its requests are
// those of the admin.
func newPurger(t *testing.T, member *embedded.Server, change ...func(*storage.Options)) *purger {
	t.Helper()
	p := &purger{Registry: registrytest.New(t, member, change...)}
	p.purges = namespacepurge.NewREST(namespacepurge.Config{
		Scheme: p.Scheme, Namespaces: p.Namespaces, Finalizer: p.Finalizer, Authorizer: authorizer.AuthorizerFunc(p.authorize), Admission: p, Unreadable: p.Unreadable,
		Content: []namespacepurge.Content{
			{
				Deleter:  deletecollection.Deleter{Store: p.Pods.Store, PageSize: 2},
				Resource: v1.SchemeGroupVersion.WithResource("pods"), Kind: v1.SchemeGroupVersion.WithKind("Pod"),
				Stage: tenancy.PurgeContainers,
			},
			{
				Deleter:  deletecollection.Deleter{Store: p.LimitRanges.Store, PageSize: 2},
				Resource: v1.SchemeGroupVersion.WithResource("limitranges"), Kind: v1.SchemeGroupVersion.WithKind("LimitRange"),
				Stage: tenancy.PurgeContent,
			},
		},
	})
	p.as(admin)
	return p
}

// awaitCaches returns when the watch caches have all that was written.
func (p *purger) awaitCaches(t *testing.T) {
	t.Helper()
	for _, content := range p.purges.Content {
		if _, err := content.Store.List(p.Context, &metainternalversion.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// as makes the requests of a user.
func (p *purger) as(name string) {
	p.ctx = warning.WithWarningRecorder(withUser(p.Context, name), p)
}

func withUser(ctx context.Context, name string) context.Context {
	return request.WithUser(ctx, &user.DefaultInfo{Name: name})
}

// AddWarning implements warning.Recorder.
func (p *purger) AddWarning(_, text string) { p.warnings = append(p.warnings, text) }

func (p *purger) authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	resource := path.Join(a.GetResource(), a.GetSubresource())
	p.asked = append(p.asked, fmt.Sprintf("%s %s %s.%s/%s in %s %q", a.GetUser().GetName(), a.GetVerb(), resource, a.GetAPIGroup(), a.GetAPIVersion(), a.GetNamespace(), a.GetName()))
	if a.GetUser().GetName() == admin {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "no rule", nil
}

// Handles implements admission.Interface.
func (p *purger) Handles(operation admission.Operation) bool {
	return operation == admission.Delete || operation == admission.Update
}

// Validate implements admission.ValidationInterface.
func (p *purger) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetOperation() == admission.Update {
		p.mu.Lock()
		p.operations = append(p.operations, fmt.Sprintf("UPDATE %s/%s %s", a.GetResource().Resource, a.GetSubresource(), a.GetName()))
		p.mu.Unlock()
		options := a.GetOperationOptions().(*metav1.UpdateOptions)
		if dryRun := len(options.DryRun) > 0; options.Kind != "UpdateOptions" || dryRun != a.IsDryRun() || dryRun != p.dryRun {
			return fmt.Errorf("dry run %t, with the options %v", a.IsDryRun(), options)
		}
		was, is := a.GetOldObject().(*tenancy.Namespace).Spec.Finalizers, a.GetObject().(*tenancy.Namespace).Spec.Finalizers
		if len(was) != 1 || len(is) != 0 {
			return fmt.Errorf("finalizers %v become %v", was, is)
		}
		if p.admitFinalize != nil {
			return p.admitFinalize()
		}
		return nil
	}
	obj := a.GetOldObject().(metav1.Object)
	options := a.GetOperationOptions().(*metav1.DeleteOptions)
	if options.Kind != "DeleteOptions" {
		return fmt.Errorf("the options are %v", options)
	}
	grace := "default"
	if options.GracePeriodSeconds != nil {
		grace = fmt.Sprint(*options.GracePeriodSeconds)
	}
	p.mu.Lock()
	p.admitted = append(p.admitted, fmt.Sprintf("%s %s %s/%s as %s by %s, grace %s, dry run %t %v", a.GetOperation(), a.GetResource().Resource,
		a.GetNamespace(), a.GetName(), a.GetKind().Kind, a.GetUserInfo().GetName(), grace, a.IsDryRun(), options.DryRun))
	p.operations = append(p.operations, fmt.Sprintf("DELETE %s %s/%s", a.GetResource().Resource, a.GetNamespace(), a.GetName()))
	p.mu.Unlock()
	if p.admit != nil {
		return p.admit(obj.GetName())
	}
	return nil
}

// purge creates a NamespacePurge and returns its status.
func (p *purger) purge(spec tenancy.NamespacePurgeSpec, dryRun ...string) ([]tenancy.PurgedResource, error) {
	purge := &tenancy.NamespacePurge{
		ObjectMeta: metav1.ObjectMeta{Namespace: request.NamespaceValue(p.ctx), ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}},
		Spec:       spec,
		Status:     tenancy.NamespacePurgeStatus{Purged: []tenancy.PurgedResource{{Resource: "sent"}}},
	}
	obj, err := p.purges.Create(p.ctx, purge, rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: dryRun})
	if err != nil {
		return nil, err
	}
	return obj.(*tenancy.NamespacePurge).Status.Purged, nil
}

func ordinary(uid types.UID) tenancy.NamespacePurgeSpec {
	return tenancy.NamespacePurgeSpec{NamespaceUID: uid}
}

func forced(uid types.UID) tenancy.NamespacePurgeSpec {
	return tenancy.NamespacePurgeSpec{NamespaceUID: uid, Force: true}
}

// both runs a test for the two kinds of purge.
func both(t *testing.T, test func(t *testing.T, spec func(types.UID) tenancy.NamespacePurgeSpec)) {
	t.Run("ordinary", func(t *testing.T) { test(t, ordinary) })
	t.Run("forced", func(t *testing.T) { test(t, forced) })
}
