// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fence ties the life of namespaced objects to that of their Namespace,
// in the etcd transactions that create and remove them:
//
//   - an object is created only if its Namespace exists, and is still the
//     Namespace that was last seen not being deleted;
//   - a Namespace is removed only if nothing is left in it.
//
// So at every revision of etcd each object is in a Namespace that exists, however
// many servers write and whatever they believe. The fence wraps the interface
// through which a store writes to etcd, below everything that can create an
// object.
package fence

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/utils/lru"
)

// MaxNamespaced is how many namespaced resources one fence can hold. The removal
// of a Namespace compares once for each and once for the Namespace itself, and
// etcd takes 128 comparisons in a transaction (--max-txn-ops).
const MaxNamespaced = 127

// rememberedNamespaces bounds the memory for revisions of Namespaces. To create
// in one that is forgotten costs one read.
const rememberedNamespaces = 1 << 14

// off turns every fence off. Nothing in the program sets it: it is there for
// tests to show what happens without, by linking with
// -ldflags "-X github.com/borough-io/borough/pkg/storage/fence.off=true".
var off string

// Resource is a resource and where in etcd its objects are.
type Resource struct {
	schema.GroupResource
	// Prefix is what all keys of the resource start with. It ends in a slash.
	Prefix string
}

// Config says what a fence is around.
type Config struct {
	// Namespaces is the resource whose objects hold those of the others. Its
	// keys are its prefix and a name.
	Namespaces Resource
	// Namespaced are the resources whose objects live in a Namespace: all there
	// are, at most MaxNamespaced, and on the same etcd. Their keys are the
	// resource's prefix, the Namespace's name, a slash and a name.
	Namespaced []Resource
	// EpochKey is a key, outside of all prefixes, by which creates that were
	// not answered are kept from being carried out later.
	EpochKey string
	// Decoder decodes a stored Namespace.
	Decoder runtime.Decoder
	// Transformer turns a stored value into what Decoder takes.
	Transformer value.Transformer
}

// Fence holds what the stores on both sides of the fence share.
type Fence struct {
	config Config
	epoch  epoch
	// revisions holds, by name, the revision of a Namespace that was not being
	// deleted then. As long as the Namespace has that revision, it is not being
	// deleted now.
	revisions *lru.Cache
}

// New returns the fence, or what is wrong with the config.
func New(config Config) (*Fence, error) {
	if n := len(config.Namespaced); n > MaxNamespaced {
		return nil, fmt.Errorf("%d namespaced resources are more than the %d that etcd can check in one transaction", n, MaxNamespaced)
	}
	for _, r := range append([]Resource{config.Namespaces}, config.Namespaced...) {
		if r.Resource == "" || len(r.Prefix) < 2 || !strings.HasSuffix(r.Prefix, "/") {
			return nil, fmt.Errorf("resource %q needs a prefix that ends in a slash, not %q", r.GroupResource, r.Prefix)
		}
	}
	if config.EpochKey == "" {
		return nil, errors.New("the key of the epoch is missing")
	}
	return &Fence{config: config, epoch: epoch{key: config.EpochKey}, revisions: lru.New(rememberedNamespaces)}, nil
}

// Wrap returns how the store of a resource is to use the client. Resources that
// the fence does not know are not changed.
func (f *Fence) Wrap(resource schema.GroupResource, client *kubernetes.Client) kubernetes.Interface {
	if off != "" {
		return client.Kubernetes
	}
	if resource == f.config.Namespaces.GroupResource {
		return &namespaces{Interface: client.Kubernetes, kv: client.KV, fence: f}
	}
	for _, r := range f.config.Namespaced {
		if resource == r.GroupResource {
			return &content{Interface: client.Kubernetes, kv: client.KV, fence: f, resource: r}
		}
	}
	return client.Kubernetes
}

// known returns the revision of a Namespace at which objects may be created in
// it, and whether there is one.
func (f *Fence) known(namespace string) (int64, bool) {
	revision, ok := f.revisions.Get(namespace)
	if !ok {
		return 0, false
	}
	return revision.(int64), true
}

// forget drops what is known of a Namespace. It is only to save a transaction
// that cannot succeed.
func (f *Fence) forget(namespace string) { f.revisions.Remove(namespace) }

// admit decides by what has just been read of a Namespace whether the object may
// be created in it. It returns and remembers the Namespace's revision.
func (f *Fence) admit(ctx context.Context, resource schema.GroupResource, namespace, name string, kv *mvccpb.KeyValue) (int64, error) {
	if kv == nil {
		f.forget(namespace)
		return 0, apierrors.NewNotFound(f.config.Namespaces.GroupResource, namespace)
	}
	deleting, err := f.deleting(ctx, kv)
	if err != nil {
		return 0, apierrors.NewInternalError(fmt.Errorf("reading namespace %s to create %s %q in it: %w", namespace, resource, name, err))
	}
	if deleting {
		f.forget(namespace)
		return 0, newTerminating(resource, namespace, name)
	}
	f.revisions.Add(namespace, kv.ModRevision)
	return kv.ModRevision, nil
}

// deleting says whether a stored Namespace is being deleted.
func (f *Fence) deleting(ctx context.Context, kv *mvccpb.KeyValue) (bool, error) {
	data, _, err := f.config.Transformer.TransformFromStorage(ctx, kv.Value, value.DefaultContext(kv.Key))
	if err != nil {
		return false, fmt.Errorf("decrypting: %w", err)
	}
	obj, err := runtime.Decode(f.config.Decoder, data)
	if err != nil {
		return false, fmt.Errorf("decoding: %w", err)
	}
	namespace, err := meta.Accessor(obj)
	if err != nil {
		return false, err
	}
	return !namespace.GetDeletionTimestamp().IsZero(), nil
}

// got returns the key that a get within a transaction has found, or nil.
func got(response *clientv3.TxnResponse, i int) *mvccpb.KeyValue {
	if kvs := response.Responses[i].GetResponseRange().Kvs; len(kvs) > 0 {
		return kvs[0]
	}
	return nil
}

// conflict is the answer to a put of an object that exists.
func conflict(response *clientv3.TxnResponse, existing *mvccpb.KeyValue, opts kubernetes.PutOptions) kubernetes.PutResponse {
	answer := kubernetes.PutResponse{Revision: response.Header.Revision}
	if opts.GetOnFailure {
		answer.KV = existing
	}
	return answer
}
