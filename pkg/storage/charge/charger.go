// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package charge

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/utils/lru"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/quota"
	"github.com/borough-io/borough/pkg/storage/internal/unanswered"
	"github.com/borough-io/borough/pkg/storage/stored"
	"github.com/borough-io/borough/pkg/storage/transaction"
)

// MaxQuotas is the maximum number of ResourceQuotas in a Namespace. All of them can be
// in one transaction, and etcd allows 128 operations in one (--max-txn-ops).
const MaxQuotas = 50

// MaxQuotasSize is the maximum size in bytes of the ResourceQuotas of a Namespace in etcd,
// without what their usage adds later. A write can write all of them together with its
// object, and etcd allows 1.5 MiB in a request (--max-request-bytes).
const MaxQuotasSize = 1 << 20

// maxNamespaces is the number of Namespaces whose quotas are cached, at about 5 KiB each. A
// write in another one costs a read, if the Namespace has quotas.
const maxNamespaces = 1 << 11

// Charger charges the quotas of all Namespaces.
type Charger struct {
	quotas      stored.Resource
	content     []stored.Resource // namespaced
	terminating PodsFunc

	mu         sync.Mutex
	namespaces *lru.Cache

	encoded encodedQuotas
}

// PodsFunc returns, from a cache, at most limit Pods of a Namespace that are being deleted, or
// nothing.
type PodsFunc func(ctx context.Context, namespace string, limit int64) []runtime.Object

// New returns a Charger for the resources in content, of which the ResourceQuotas are one.
// All are stored in the same etcd.
func New(content []stored.Resource, terminating PodsFunc) (*Charger, error) {
	quotas := tenancy.Resource("resourcequotas")
	i := slices.IndexFunc(content, func(r stored.Resource) bool { return r.GroupResource == quotas })
	if i < 0 {
		return nil, fmt.Errorf("%s are not stored", quotas)
	}
	return &Charger{quotas: content[i], content: content, terminating: terminating, namespaces: lru.New(maxNamespaces), encoded: newEncodedQuotas()}, nil
}

// IsQuotas reports whether a resource is that of the quotas.
func (c *Charger) IsQuotas(resource schema.GroupResource) bool {
	return c != nil && resource == c.quotas.GroupResource
}

// Explain returns the denial of a write in a Namespace with what helps its user.
func (c *Charger) Explain(ctx context.Context, namespace string, denial *quota.Denial) *quota.Denial {
	if !denial.Exceeded() {
		return denial
	}
	// One more shows that not all are examined.
	return denial.WithHolders(c.terminating(ctx, namespace, quota.MaxExamined+1))
}

// Check returns why the quotas of a Namespace do not allow a change, or nil. It charges
// nothing.
func (c *Charger) Check(ctx context.Context, kv clientv3.KV, namespace string, change *quota.Change) (*quota.Denial, error) {
	ns := c.namespace(namespace)
	quotas, err := c.read(ctx, kv, ns)
	if err == nil && !quotas.counted() {
		err = inExclusiveTurn(ctx, ns, func(ctx context.Context) error {
			quotas, err = c.countAll(ctx, kv, ns)
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	charge := &Charge{charger: c, change: change, namespace: ns, base: quotas}
	_, denial, err := charge.usage()
	if denial != nil {
		denial = c.Explain(ctx, namespace, denial)
	}
	return denial, err
}

// namespace is what a server knows of the quotas in a Namespace.
type namespace struct {
	name string
	pipeline
}

// known are the quotas of a Namespace at a revision of etcd.
type known struct {
	revision int64
	quotas   []storedQuota
}

// storedQuota is a quota as it is in etcd.
type storedQuota struct {
	*tenancy.ResourceQuota // nil if it cannot be read
	key, value             string
	// revision is the one that wrote it, or predictedRevision if it is only known what a
	// transaction in flight writes.
	revision int64
	// unreadable is why it cannot be read.
	unreadable error
}

// counted reports whether the usage of a quota is known, or never can be.
func (q *storedQuota) counted() bool { return q.unreadable != nil || quota.Counted(q.ResourceQuota) }

// predictedRevision stands for the revision of a transaction that is not answered yet.
const predictedRevision = 0

// unchanged returns the comparison that the quota is as known. A predicted quota is
// compared by its value: another server could have written another one at any revision,
// or as any version, that can be predicted.
func (q *storedQuota) unchanged() clientv3.Cmp {
	if q.revision == predictedRevision {
		return clientv3.Compare(clientv3.Value(q.key), "=", q.value)
	}
	return clientv3.Compare(clientv3.ModRevision(q.key), "=", q.revision)
}

// holds reports whether the comparison holds of what was read.
func (q *storedQuota) holds(read storedQuota) bool {
	if q.revision == predictedRevision {
		return q.key == read.key && q.value == read.value
	}
	return q.key == read.key && q.revision == read.revision
}

// namespace returns what is known of a Namespace. If nothing is known, that is a Namespace
// without quotas: if etcd has some, the comparison of the first write fails and reads them.
func (c *Charger) namespace(name string) *namespace {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ns, ok := c.namespaces.Get(name); ok {
		return ns.(*namespace)
	}
	ns := &namespace{name: name, pipeline: newPipeline()}
	c.namespaces.Add(name, ns)
	return ns
}

// Forget drops what is known of a Namespace that was removed: its quotas may take 1 MiB.
func (c *Charger) Forget(name string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.namespaces.Remove(name)
}

// counted reports whether the usage of all quotas is known.
func (k *known) counted() bool {
	return !slices.ContainsFunc(k.quotas, func(q storedQuota) bool { return !q.counted() })
}

// checkNumbers returns why one more quota, whose value has a size, must not be created.
func (k *known) checkNumbers(size int) *quota.Denial {
	if len(k.quotas) >= MaxQuotas {
		return quota.NewDenial(fmt.Sprintf("the namespace has %d resource quotas, the maximum", MaxQuotas))
	}
	return checkSize(k.size() + size)
}

func checkSize(size int) *quota.Denial {
	if size <= MaxQuotasSize {
		return nil
	}
	return quota.NewDenial(fmt.Sprintf("the resource quotas of the namespace would have %d bytes in etcd, more than the maximum of %d", size, MaxQuotasSize))
}

// size returns the size of the values.
func (k *known) size() (size int) {
	for i := range k.quotas {
		size += len(k.quotas[i].value)
	}
	return size
}

// CheckUpdate returns why an object must not be updated to a value of a size, if it is a
// quota. It considers what other servers write only if that was carried out before.
func (c *Charger) CheckUpdate(ctx context.Context, kv clientv3.KV, resource schema.GroupResource, namespace, key string, size int) (*quota.Denial, error) {
	if !c.IsQuotas(resource) {
		return nil, nil
	}
	quotas, err := c.read(ctx, kv, c.namespace(namespace))
	if err != nil {
		return nil, err
	}
	var old int
	if i := slices.IndexFunc(quotas.quotas, func(q storedQuota) bool { return q.key == key }); i >= 0 {
		old = len(quotas.quotas[i].value)
	}
	if size <= old {
		return nil, nil
	}
	return checkSize(quotas.size() - old + size), nil
}

// CheckAdded returns Forbidden if an object is a quota that is too large to be created with its
// Namespace: the fence, which compares the size of others with that of all quotas of their
// Namespace, does not see its create.
func (c *Charger) CheckAdded(object transaction.Object) error {
	_, name, ok := c.quotas.Split(object.Key)
	if !ok {
		return nil
	}
	if denial := checkSize(len(object.Value)); denial != nil {
		return apierrors.NewForbidden(c.quotas.GroupResource, name, denial)
	}
	return nil
}

// readable reports whether all quotas can be read.
func (k *known) readable() bool {
	return !slices.ContainsFunc(k.quotas, func(q storedQuota) bool { return q.unreadable != nil })
}

// holds reports whether what was read is what is known.
func (k *known) holds(read *known) bool {
	return slices.EqualFunc(k.quotas, read.quotas, func(q, read storedQuota) bool { return q.holds(read) })
}

// get returns the read of the quotas of a Namespace.
func (c *Charger) get(ns *namespace) []clientv3.Op {
	return []clientv3.Op{clientv3.OpGet(c.quotas.In(ns.name), clientv3.WithPrefix())}
}

// read reads the quotas of a Namespace.
func (c *Charger) read(ctx context.Context, kv clientv3.KV, ns *namespace) (*known, error) {
	// Clients send a transaction to the leader, but do not repeat it.
	response, _, err := unanswered.Retry(ctx, c.quotas.In(ns.name), func(bool) (*clientv3.TxnResponse, error) {
		return kv.Txn(ctx).Then(c.get(ns)...).Commit()
	})
	if err != nil {
		return nil, err
	}
	return c.learn(ctx, ns, response, 0), nil
}

// learn takes the quotas of a Namespace from the i-th operation of a transaction. The
// Namespace remembers them if all can be read.
func (c *Charger) learn(ctx context.Context, ns *namespace, response *clientv3.TxnResponse, i int) *known {
	read := &known{revision: response.Header.Revision}
	for _, kv := range response.Responses[i].GetResponseRange().Kvs {
		read.quotas = append(read.quotas, c.decode(ctx, kv))
	}
	if read.readable() {
		ns.learn(read)
	} else {
		ns.forget() // the next write may be able to read them
	}
	return read
}

func (c *Charger) decode(ctx context.Context, kv *mvccpb.KeyValue) storedQuota {
	read := storedQuota{key: string(kv.Key), value: string(kv.Value), revision: kv.ModRevision}
	obj, err := c.quotas.Decode(ctx, kv)
	if err != nil {
		read.unreadable = err
		return read
	}
	var ok bool
	if read.ResourceQuota, ok = obj.(*tenancy.ResourceQuota); !ok {
		read.unreadable = fmt.Errorf("read %s: it is a %T", kv.Key, obj)
		return read
	}
	for _, list := range []corev1.ResourceList{read.Spec.Hard, read.Status.Hard, read.Status.Used} {
		quota.Compact(list)
	}
	return read
}

// encode returns the value of a quota that is to be written, and not modified any more.
func (c *Charger) encode(ctx context.Context, key string, q *tenancy.ResourceQuota) (string, error) {
	data, err := runtime.Encode(c.quotas.Codec, q)
	if err != nil {
		return "", apierrors.NewInternalError(fmt.Errorf("encode %s: %w", key, err))
	}
	c.encoded.add(data, q)
	if data, err = c.quotas.Transformer.TransformToStorage(ctx, data, value.DefaultContext(key)); err != nil {
		return "", apierrors.NewInternalError(fmt.Errorf("encrypt %s: %w", key, err))
	}
	return string(data), nil
}
