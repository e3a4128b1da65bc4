// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fence adds conditions to the etcd transactions that create and remove
// namespaced objects and Namespaces:
//
//   - an object is created only if its Namespace exists, and is unchanged since it
//     was last read and was not being deleted;
//   - a Namespace is created together with objects in it (package transaction), or
//     alone;
//   - a Namespace is removed only if it contains no objects;
//   - an object is written only if the objects that admission decided by (package
//     precondition) have not changed;
//   - an object is written together with the usage of the quotas that count it (package
//     charge).
//
// So at every revision of etcd each object is in a Namespace that exists,
// regardless of how many servers write and how stale their caches are. The fence
// wraps the interface through which a store writes to etcd, below all code that
// can create an object.
//
// The creates of all resources compare the generation of creates, so that one that etcd
// did not answer can be repeated (ResolveCreate).
package fence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/lru"

	tenancyerrors "github.com/borough-io/borough/pkg/apis/tenancy/errors"
	"github.com/borough-io/borough/pkg/quota"
	"github.com/borough-io/borough/pkg/storage/charge"
	"github.com/borough-io/borough/pkg/storage/stored"
)

// MaxNamespaced is the maximum number of namespaced resources of a fence. The
// transaction that removes a Namespace has one comparison for each resource and
// one for the Namespace, and etcd allows 128 in a transaction (--max-txn-ops).
const MaxNamespaced = 127

// maxCachedRevisions is the size of the cache of Namespace revisions. A create in
// a Namespace that is not in the cache costs one more read.
const maxCachedRevisions = 1 << 14

// off disables every fence if it is not empty. Only tests set it, to show what
// happens without a fence, by linking with
// -ldflags "-X github.com/borough-io/borough/pkg/storage/fence.off=true".
var off string

// Config configures a Fence.
type Config struct {
	// Namespaces is the resource of the Namespaces.
	Namespaces stored.Resource
	// Namespaced are all namespaced resources, at most MaxNamespaced, and stored in
	// the same etcd as the Namespaces.
	Namespaced []stored.Resource
	// Conditional are other resources, in the same etcd, that transactions may have
	// conditions on.
	Conditional []stored.Resource
	// GenerationKey is a key, outside of all prefixes, that ResolveCreate writes to
	// determine the outcome of a create that etcd did not answer.
	GenerationKey string
	// GuardPrefix is the prefix, outside of all others, of the keys of guards.
	GuardPrefix string
	// SeemsEmpty reports whether a Namespace probably contains no objects, without a
	// request to etcd. It saves a read when the Namespace is removed. May be nil.
	SeemsEmpty func(ctx context.Context, namespace string) bool
	// Unreadable reports whether a Namespace contains objects that cannot be read, so that
	// no list shows them. May be nil.
	Unreadable func(namespace string) bool
	// Charger charges quotas for the writes of namespaced objects. May be nil.
	Charger *charge.Charger
}

// Fence is the state that the stores of Namespaces and namespaced resources
// share.
type Fence struct {
	config     Config
	generation createGeneration
	// revisions maps the name of a Namespace to a revision at which it was not
	// being deleted. A Namespace that still has this revision is not being deleted.
	revisions *lru.Cache
	// kv is the client that Check and Guard read with. It is taken from one of the stores,
	// which are all on the same etcd.
	kv atomic.Pointer[clientv3.KV]
}

// New returns a fence, or an error if the config is invalid.
func New(config Config) (*Fence, error) {
	if n := len(config.Namespaced); n > MaxNamespaced {
		return nil, fmt.Errorf("%d namespaced resources are more than the %d that etcd can check in one transaction", n, MaxNamespaced)
	}
	for _, r := range append([]stored.Resource{config.Namespaces}, config.Namespaced...) {
		if r.Resource == "" || len(r.Prefix) < 2 || !strings.HasSuffix(r.Prefix, "/") {
			return nil, fmt.Errorf("resource %q needs a prefix that ends in a slash, not %q", r.GroupResource, r.Prefix)
		}
	}
	if config.GenerationKey == "" || config.GuardPrefix == "" {
		return nil, errors.New("the key of the create generation, or the prefix of the guards, is missing")
	}
	return &Fence{config: config, generation: createGeneration{key: config.GenerationKey}, revisions: lru.New(maxCachedRevisions)}, nil
}

// Wrap returns the interface that the store of the resource uses to write with
// the client. A resource that is not in the Config is cluster-scoped.
func (f *Fence) Wrap(resource schema.GroupResource, client *kubernetes.Client) kubernetes.Interface {
	i := slices.IndexFunc(f.config.Namespaced, func(r stored.Resource) bool { return r.GroupResource == resource })
	if i >= 0 {
		kv := client.KV
		f.kv.Store(&kv)
	}
	switch {
	case off != "":
		return client.Kubernetes
	case resource == f.config.Namespaces.GroupResource:
		return &namespaces{Interface: client.Kubernetes, kv: client.KV, fence: f}
	case i >= 0:
		return &content{Interface: client.Kubernetes, kv: client.KV, fence: f, resource: f.config.Namespaced[i]}
	}
	return &clusterScoped{Interface: client.Kubernetes, kv: client.KV, fence: f}
}

// CheckQuotas implements quota.Checker. It returns an error until the store of a
// namespaced resource is open.
func (f *Fence) CheckQuotas(ctx context.Context, namespace string, change *quota.Change) (*quota.Denial, error) {
	kv := f.kv.Load()
	switch {
	case f.config.Charger == nil:
		return nil, nil
	case kv == nil:
		return nil, errors.New("check quotas: no store is open")
	}
	return f.config.Charger.Check(ctx, *kv, namespace, change)
}

// cachedRevision returns the cached revision of a Namespace, at which objects may
// be created in it, and whether there is one.
func (f *Fence) cachedRevision(namespace string) (int64, bool) {
	revision, ok := f.revisions.Get(namespace)
	if !ok {
		return 0, false
	}
	return revision.(int64), true
}

// forget removes a Namespace from the cache. This only saves a transaction that
// cannot succeed.
func (f *Fence) forget(namespace string) { f.revisions.Remove(namespace) }

// Removed drops what is cached of a Namespace that was removed.
func (f *Fence) Removed(namespace string) {
	f.forget(namespace)
	f.config.Charger.Forget(namespace)
}

// checkNamespace returns an error if the object must not be created in the
// Namespace that was just read. Otherwise it caches and returns the Namespace's
// revision.
func (f *Fence) checkNamespace(ctx context.Context, resource schema.GroupResource, namespace, name string, kv *mvccpb.KeyValue) (int64, error) {
	if kv == nil {
		f.forget(namespace)
		return 0, apierrors.NewNotFound(f.config.Namespaces.GroupResource, namespace)
	}
	deleting, err := f.deleting(ctx, kv)
	if err != nil {
		return 0, apierrors.NewInternalError(fmt.Errorf("read namespace %s to create %s %q in it: %w", namespace, resource, name, err))
	}
	if deleting {
		f.forget(namespace)
		return 0, tenancyerrors.NewNamespaceTerminating(resource, namespace, name)
	}
	f.revisions.Add(namespace, kv.ModRevision)
	return kv.ModRevision, nil
}

// deleting reports whether a stored Namespace is being deleted.
func (f *Fence) deleting(ctx context.Context, kv *mvccpb.KeyValue) (bool, error) {
	obj, err := f.config.Namespaces.Decode(ctx, kv)
	if err != nil {
		return false, err
	}
	namespace, err := meta.Accessor(obj)
	if err != nil {
		return false, err
	}
	return !namespace.GetDeletionTimestamp().IsZero(), nil
}

// rangeResult returns the key that the i-th operation of a transaction, a get, has
// found, or nil.
func rangeResult(response *clientv3.TxnResponse, i int) *mvccpb.KeyValue {
	if kvs := response.Responses[i].GetResponseRange().Kvs; len(kvs) > 0 {
		return kvs[0]
	}
	return nil
}

// conflict returns the response to a put of an object that exists.
func conflict(response *clientv3.TxnResponse, existing *mvccpb.KeyValue, opts kubernetes.PutOptions) kubernetes.PutResponse {
	put := kubernetes.PutResponse{Revision: response.Header.Revision}
	if opts.GetOnFailure {
		put.KV = existing
	}
	return put
}
