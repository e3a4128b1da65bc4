// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	genericoptions "k8s.io/apiserver/pkg/server/options"

	boroughadmission "github.com/borough-io/borough/pkg/admission"
	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned/fake"
	"github.com/borough-io/borough/pkg/generated/informers/externalversions"
)

// TestUpstreamPlugins fails when the library changes the plugins that it enables
// by default. The server's own list replaces that list: decide there whether to
// follow, then change this test.
func TestUpstreamPlugins(t *testing.T) {
	want := []string{
		"NamespaceLifecycle",
		"MutatingAdmissionPolicy",
		"MutatingAdmissionWebhook",
		"ValidatingAdmissionPolicy",
		"ValidatingAdmissionWebhook",
	}
	options := genericoptions.NewAdmissionOptions()
	if diff := cmp.Diff(want, options.RecommendedPluginOrder); diff != "" {
		t.Errorf("the library's plugins have changed: -want +got\n%s", diff)
	}
	if off := options.DefaultOffPlugins.UnsortedList(); len(off) > 0 {
		t.Errorf("the library has turned off %v", off)
	}
}

// recorder is a plugin that remembers what it was given.
type recorder struct {
	*admission.Handler
	informers externalversions.SharedInformerFactory
	client    versioned.Interface
}

func (r *recorder) SetTenancyInformers(informers externalversions.SharedInformerFactory) {
	r.informers = informers
}
func (r *recorder) SetTenancyClient(client versioned.Interface) { r.client = client }

func TestInitializer(t *testing.T) {
	client := fake.NewClientset()
	informers := externalversions.NewSharedInformerFactory(client, 0)
	initializer := &boroughadmission.Initializer{Informers: informers, Client: client}

	plugin := &recorder{}
	initializer.Initialize(plugin)
	if plugin.informers != informers || plugin.client != versioned.Interface(client) {
		t.Errorf("the plugin was given %v and %v", plugin.informers, plugin.client)
	}
	initializer.Initialize(admission.NewHandler()) // wants nothing
}

type checker chan struct{}

func (checker) Name() string            { return "test" }
func (c checker) Done() <-chan struct{} { return c }

func TestWaitForSync(t *testing.T) {
	pods := admission.NewAttributesRecord(&tenancy.Pod{}, nil, v1.SchemeGroupVersion.WithKind("Pod"), "ns", "x",
		v1.SchemeGroupVersion.WithResource("pods"), "", admission.Create, nil, false, nil)
	rejected := func(t *testing.T, err error) {
		t.Helper()
		want := `pods.tenancy.borough.io "x" is forbidden: not yet ready to handle request`
		if !apierrors.IsForbidden(err) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}

	t.Run("synced", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // makes no difference
		synced := make(checker)
		close(synced)
		if err := boroughadmission.WaitForSync(ctx, pods, synced); err != nil {
			t.Error(err)
		}
	})
	t.Run("synced later", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			synced := make(checker)
			time.AfterFunc(9*time.Second, func() { close(synced) })
			if err := boroughadmission.WaitForSync(t.Context(), pods, synced); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("never synced", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			rejected(t, boroughadmission.WaitForSync(t.Context(), pods, make(checker)))
		})
	})
	t.Run("request ends", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		rejected(t, boroughadmission.WaitForSync(ctx, pods, make(checker)))
	})
}
