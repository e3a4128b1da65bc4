// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package charge

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/quota"
	"github.com/borough-io/borough/pkg/storage/internal/unanswered"
	"github.com/borough-io/borough/pkg/storage/stored"
	"github.com/borough-io/borough/pkg/storage/unreadable"
)

// countPage is the number of Pods that are read at once to count them.
const countPage = 500

// Count counts the quotas of a Namespace whose usage is not known, after a write that
// leaves such. A failure only delays the next write that a quota counts, so it is logged.
func (c *Charger) Count(ctx context.Context, kv clientv3.KV, namespace string) {
	ns := c.namespace(namespace)
	err := inExclusiveTurn(ctx, ns, func(ctx context.Context) error {
		_, _, err := unanswered.Retry(ctx, c.quotas.In(namespace), func(bool) (*known, error) { return c.countAll(ctx, kv, ns) })
		return err
	})
	if err != nil {
		klog.FromContext(ctx).V(2).Info("A resource quota is not counted yet", "namespace", namespace, "err", err)
	}
}

// countAll reads the quotas, and counts those whose usage is not known. A quota that
// changes at the same time is left as it is. It returns the quotas, all counted.
func (c *Charger) countAll(ctx context.Context, kv clientv3.KV, ns *namespace) (*known, error) {
	for {
		read, err := c.read(ctx, kv, ns)
		if err != nil || read.counted() {
			return read, err
		}
		uncounted := slices.DeleteFunc(slices.Clone(read.quotas), func(q storedQuota) bool { return q.counted() })
		if err := c.count(ctx, kv, ns.name, uncounted); err != nil {
			return nil, err
		}
	}
}

// count counts the objects of a Namespace for quotas, and writes the usage of each that
// has not changed.
func (c *Charger) count(ctx context.Context, kv clientv3.KV, namespace string, quotas []storedQuota) error {
	totals, err := c.totals(ctx, kv, namespace, quotas)
	if apierrors.IsServiceUnavailable(err) {
		return err
	}
	if err != nil {
		// If etcd did not answer, the write is tried again.
		return fmt.Errorf("count the objects in namespace %q for its resource quotas: %w", namespace, err)
	}
	for i, q := range quotas {
		value, err := c.encode(ctx, q.key, totals[i].Counted())
		if err != nil {
			return err
		}
		if _, err := kv.Txn(ctx).If(q.unchanged()).Then(clientv3.OpPut(q.key, value)).Commit(); err != nil {
			return err
		}
	}
	return nil
}

// totals returns the usage of each quota. All reads are of one revision.
func (c *Charger) totals(ctx context.Context, kv clientv3.KV, namespace string, quotas []storedQuota) (totals, error) {
	pods := tenancy.Resource("pods")
	var counts []clientv3.Op
	for _, r := range c.content {
		counts = append(counts, clientv3.OpGet(r.In(namespace), clientv3.WithPrefix(), clientv3.WithCountOnly()))
	}
	response, err := kv.Txn(ctx).Then(counts...).Commit()
	if err != nil {
		return nil, err
	}
	var all totals
	for _, q := range quotas {
		all = append(all, quota.NewTotal(q.ResourceQuota))
	}
	for i, r := range c.content {
		n := response.Responses[i].GetResponseRange().Count
		if r.GroupResource != pods {
			all.addCount(r.GroupResource, n)
			continue
		}
		if n == 0 {
			continue
		}
		if err := all.addEach(ctx, kv, &r, namespace, response.Header.Revision); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// totals are the usages of several quotas.
type totals []*quota.Total

func (t totals) add(usage *quota.Usage) {
	for _, total := range t {
		total.Add(usage)
	}
}

func (t totals) addCount(resource schema.GroupResource, n int64) {
	for _, total := range t {
		total.AddCount(resource, n)
	}
}

// addEach adds the usage of each object at a revision.
func (t totals) addEach(ctx context.Context, kv clientv3.KV, r *stored.Resource, namespace string, revision int64) error {
	prefix := r.In(namespace)
	key, end := prefix, clientv3.GetPrefixRangeEnd(prefix)
	var unread int64
	var first error
	for {
		response, err := kv.Get(ctx, key, clientv3.WithRange(end), clientv3.WithRev(revision), clientv3.WithLimit(countPage))
		if err != nil {
			return err
		}
		for _, kv := range response.Kvs {
			obj, err := r.Decode(ctx, kv)
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case unreadable.IsOutage(err):
				// Not wrapped: after an error of etcd, the write would be tried again.
				return apierrors.NewServiceUnavailable(fmt.Sprintf("an object in namespace %q, which a resource quota may count, cannot be decrypted at present: %v", namespace, err))
			case err != nil:
				unread, first = unread+1, cmp.Or(first, err)
				continue
			}
			t.add(quota.Of(r.GroupResource, obj))
		}
		if !response.More {
			break
		}
		key = string(response.Kvs[len(response.Kvs)-1].Key) + "\x00"
	}
	if unread > 0 {
		// When one is deleted, the quotas are counted again.
		klog.FromContext(ctx).Error(first, "Objects that cannot be read are counted only for count/RESOURCE of a resource quota", "namespace", namespace, "objects", unread)
		t.addCount(r.GroupResource, unread)
	}
	return nil
}
