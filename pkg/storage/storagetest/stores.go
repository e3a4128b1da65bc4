// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	apistorage "k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/test/poll"
)

// Stores are the stores of the group's resources without validation and defaults, so
// that tests see only what the storage does.
type Stores struct {
	Namespaces, LimitRanges, ResourceQuotas, Pods *genericregistry.Store
	// Config is the config of the server with the stores.
	Config *genericapiserver.Config
	// Backend is the etcd of the stores.
	Backend *storage.Backend
}

// NewStores opens the stores of one server. They are destroyed with the test.
func NewStores(t testing.TB, options *storage.Options, config storage.Config) Stores {
	t.Helper()
	c, backend := NewServerConfig(t, withoutPolling(options), config)
	return Stores{
		Config:     c,
		Backend:    backend,
		Namespaces: newStore(t, backend, config.Scheme, "namespaces", false, &tenancy.Namespace{}, &tenancy.NamespaceList{}),
		Pods:       newStore(t, backend, config.Scheme, "pods", true, &tenancy.Pod{}, &tenancy.PodList{}),
		LimitRanges: newStore(t, backend, config.Scheme, "limitranges", true,
			&tenancy.LimitRange{}, &tenancy.LimitRangeList{}),
		ResourceQuotas: newStore(t, backend, config.Scheme, "resourcequotas", true,
			&tenancy.ResourceQuota{}, &tenancy.ResourceQuotaList{}),
	}
}

func newStore(t testing.TB, getter generic.RESTOptionsGetter, scheme *runtime.Scheme, resource string, namespaced bool, object, list runtime.Object) *genericregistry.Store {
	t.Helper()
	rules := strategy{ObjectTyper: scheme, NameGenerator: names.SimpleNameGenerator, namespaced: namespaced}
	attrs := apistorage.DefaultClusterScopedAttr
	if namespaced {
		attrs = apistorage.DefaultNamespaceScopedAttr
	}
	store := &genericregistry.Store{
		NewFunc:                   object.DeepCopyObject,
		NewListFunc:               list.DeepCopyObject,
		DefaultQualifiedResource:  tenancy.Resource(resource),
		SingularQualifiedResource: tenancy.Resource(resource),
		CreateStrategy:            rules,
		UpdateStrategy:            rules,
		DeleteStrategy:            rules,
		TableConvertor:            rest.NewDefaultTableConvertor(tenancy.Resource(resource)),
		PredicateFunc: func(label labels.Selector, field fields.Selector) apistorage.SelectionPredicate {
			return apistorage.SelectionPredicate{Label: label, Field: field, GetAttrs: attrs}
		},
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: getter, AttrFunc: attrs}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Destroy)
	WaitReady(t, store)
	return store
}

// WaitReady waits until the store's watch cache is ready.
func WaitReady(t testing.TB, store *genericregistry.Store) {
	t.Helper()
	poll.Eventually(t, func() string {
		if err := store.Storage.Storage.ReadinessCheck(); err != nil {
			return err.Error()
		}
		return ""
	})
}

type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	namespaced bool
}

func (s strategy) NamespaceScoped() bool                                 { return s.namespaced }
func (strategy) PrepareForCreate(context.Context, runtime.Object)        {}
func (strategy) PrepareForUpdate(_ context.Context, _, _ runtime.Object) {}
func (strategy) Canonicalize(runtime.Object)                             {}
func (strategy) AllowCreateOnUpdate(context.Context) bool                { return true }
func (strategy) AllowUnconditionalUpdate(context.Context) bool           { return true }

func (strategy) Validate(context.Context, runtime.Object) field.ErrorList { return nil }

func (strategy) ValidateUpdate(_ context.Context, _, _ runtime.Object) field.ErrorList { return nil }

func (strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

func (strategy) WarningsOnUpdate(_ context.Context, _, _ runtime.Object) []string { return nil }
