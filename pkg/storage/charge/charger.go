// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package charge

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/utils/lru"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/quota"
)

// MaxQuotas is the maximum number of ResourceQuotas in a Namespace. All of them can be
// in one transaction, and etcd allows 128 operations in one (--max-txn-ops).
const MaxQuotas = 50

// maxNamespaces is the number of Namespaces whose quotas are cached. A write in another
// one costs a read, if the Namespace has quotas.
const maxNamespaces = 1 << 14

// Resource is a namespaced resource and how its objects are stored.
type Resource struct {
	schema.GroupResource
	// Prefix is the prefix of all keys of the resource. It ends in a slash, and is
	// followed by the Namespace's name, a slash and a name.
	Prefix      string
	Codec       runtime.Codec
	Transformer value.Transformer
}

// Charger charges the quotas of all Namespaces.
type Charger struct {
	quotas  Resource
	content []Resource
	pods    PodsFunc

	mu         sync.Mutex
	namespaces *lru.Cache
}

// PodsFunc returns the Pods of a Namespace from a cache, or nothing.
type PodsFunc func(ctx context.Context, namespace string) []runtime.Object

// New returns a Charger for quotas, one of the resources in content. All resources
// are stored in the same etcd.
func New(quotas schema.GroupResource, content []Resource, pods PodsFunc) (*Charger, error) {
	for _, r := range content {
		if r.GroupResource == quotas {
			return &Charger{quotas: r, content: content, pods: pods, namespaces: lru.New(maxNamespaces)}, nil
		}
	}
	return nil, fmt.Errorf("%s are not stored", quotas)
}

// Quotas reports whether a resource is that of the quotas.
func (c *Charger) Quotas(resource schema.GroupResource) bool {
	return c != nil && resource == c.quotas.GroupResource
}

// Explain returns the denial of a write in a Namespace with what helps its user.
func (c *Charger) Explain(ctx context.Context, namespace string, denial *quota.Denial) *quota.Denial {
	return denial.WithHolders(c.pods(ctx, namespace))
}

// Check returns why the quotas of a Namespace do not allow a change, or nil. It charges
// nothing.
func (c *Charger) Check(ctx context.Context, kv clientv3.KV, namespace string, change *quota.Change) (*quota.Denial, error) {
	charge := c.newCharge(ctx, kv, namespace, change, "")
	defer charge.End()
	if err := charge.read(ctx); err != nil {
		return nil, err
	}
	denial, err := charge.Prepare(ctx)
	if denial != nil {
		denial = c.Explain(ctx, namespace, denial)
	}
	return denial, err
}

// namespace is what a server knows of the quotas in a Namespace.
type namespace struct {
	name string
	// turn holds an element while a write charges the quotas.
	turn chan struct{}
	// known is never nil.
	known atomic.Pointer[known]
}

// known are the quotas of a Namespace at a revision of etcd.
type known struct {
	revision int64
	quotas   []stored
}

// stored is a quota as it is in etcd.
type stored struct {
	*tenancy.ResourceQuota // nil if it cannot be read
	key                    string
	revision               int64
	// unreadable is why it cannot be read.
	unreadable error
}

// counted reports whether the usage of a quota is known, or never can be.
func (q *stored) counted() bool { return q.unreadable != nil || quota.Counted(q.ResourceQuota) }

// revisionOfCommit stands for the revision of a transaction that is not carried out yet.
const revisionOfCommit = 0

// namespace returns what is known of a Namespace; if nothing is, that it has no quotas:
// a write in it fails if it has some.
func (c *Charger) namespace(name string) *namespace {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ns, ok := c.namespaces.Get(name); ok {
		return ns.(*namespace)
	}
	ns := &namespace{name: name, turn: make(chan struct{}, 1)}
	ns.known.Store(&known{})
	c.namespaces.Add(name, ns)
	return ns
}

// learn replaces what is known by what is newer.
func (n *namespace) learn(read *known) {
	for {
		current := n.known.Load()
		if current.revision > read.revision || n.known.CompareAndSwap(current, read) {
			return
		}
	}
}

// counted reports whether the usage of all quotas is known.
func (k *known) counted() bool {
	return !slices.ContainsFunc(k.quotas, func(q stored) bool { return !q.counted() })
}

// equal reports whether both are the same quotas at the same revisions.
func (k *known) equal(other *known) bool {
	return slices.EqualFunc(k.quotas, other.quotas, func(a, b stored) bool { return a.key == b.key && a.revision == b.revision })
}

func (c *Charger) prefix(namespace string) string { return c.quotas.Prefix + namespace + "/" }

func (c *Charger) decode(ctx context.Context, kv *mvccpb.KeyValue) stored {
	read := stored{key: string(kv.Key), revision: kv.ModRevision}
	obj, err := c.quotas.decode(ctx, kv)
	if err != nil {
		read.unreadable = err
		return read
	}
	var ok bool
	if read.ResourceQuota, ok = obj.(*tenancy.ResourceQuota); !ok {
		read.unreadable = fmt.Errorf("read %s: it is a %T", kv.Key, obj)
	}
	return read
}

func (c *Charger) encode(ctx context.Context, key string, q *tenancy.ResourceQuota) (clientv3.Op, error) {
	data, err := runtime.Encode(c.quotas.Codec, q)
	if err != nil {
		return clientv3.Op{}, apierrors.NewInternalError(fmt.Errorf("encode %s: %w", key, err))
	}
	if data, err = c.quotas.Transformer.TransformToStorage(ctx, data, value.DefaultContext(key)); err != nil {
		return clientv3.Op{}, apierrors.NewInternalError(fmt.Errorf("encrypt %s: %w", key, err))
	}
	return clientv3.OpPut(key, string(data)), nil
}

func (r *Resource) decode(ctx context.Context, kv *mvccpb.KeyValue) (runtime.Object, error) {
	data, _, err := r.Transformer.TransformFromStorage(ctx, kv.Value, value.DefaultContext(kv.Key))
	if err != nil {
		return nil, fmt.Errorf("decrypt %s: %w", kv.Key, err)
	}
	obj, err := runtime.Decode(r.Codec, data)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", kv.Key, err)
	}
	return obj, nil
}
