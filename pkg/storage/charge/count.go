// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package charge

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/quota"
)

// countPage is the number of Pods that are read at once to count them.
const countPage = 500

// Count counts the quotas of a Namespace whose usage is not known, after one of them was
// written. A failure only delays the next write that a quota counts, so it is logged.
func (c *Charger) Count(ctx context.Context, kv clientv3.KV, namespace string) {
	if c == nil {
		return
	}
	charge := c.newCharge(ctx, kv, namespace, nil, "")
	defer charge.End()
	err := charge.takeTurn(ctx)
	if err == nil {
		err = charge.countAll(ctx)
	}
	if err != nil {
		klog.FromContext(ctx).V(2).Info("A resource quota is not counted yet", "namespace", namespace, "reason", err)
	}
}

// countAll reads the quotas, and counts those whose usage is not known. A quota that
// changes at the same time is left as it is.
func (c *Charge) countAll(ctx context.Context) error {
	for {
		if err := c.read(ctx); err != nil {
			return err
		}
		quotas := c.namespace.known.Load()
		if quotas.counted() {
			return nil
		}
		for _, q := range quotas.quotas {
			if q.counted() {
				continue
			}
			if err := c.charger.count(ctx, c.kv, c.namespace.name, q); err != nil {
				return err
			}
		}
	}
}

// read reads the quotas.
func (c *Charge) read(ctx context.Context) error {
	response, err := c.kv.Txn(ctx).Then(c.Get()...).Commit()
	if err != nil {
		return err
	}
	c.Read(ctx, response, 0)
	return nil
}

// count counts the objects of a Namespace for a quota, and writes its usage if the quota
// has not changed.
func (c *Charger) count(ctx context.Context, kv clientv3.KV, namespace string, q stored) error {
	total, err := c.total(ctx, kv, namespace, q.ResourceQuota)
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("count the objects for resource quota %q: %w", q.Name, err))
	}
	counted := *q.ResourceQuota
	counted.Status = total.Status()
	put, err := c.encode(ctx, q.key, &counted)
	if err != nil {
		return err
	}
	_, err = kv.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(q.key), "=", q.revision)).Then(put).Commit()
	return err
}

// total returns the usage of a quota. All reads are of one revision.
func (c *Charger) total(ctx context.Context, kv clientv3.KV, namespace string, q *tenancy.ResourceQuota) (*quota.Total, error) {
	pods := tenancy.Resource("pods")
	var counts []clientv3.Op
	for _, r := range c.content {
		counts = append(counts, clientv3.OpGet(r.Prefix+namespace+"/", clientv3.WithPrefix(), clientv3.WithCountOnly()))
	}
	response, err := kv.Txn(ctx).Then(counts...).Commit()
	if err != nil {
		return nil, err
	}
	total := quota.NewTotal(q)
	for i, r := range c.content {
		n := response.Responses[i].GetResponseRange().Count
		if r.GroupResource != pods {
			total.AddCount(r.GroupResource, n)
			continue
		}
		if n == 0 {
			continue
		}
		if err := r.each(ctx, kv, namespace, response.Header.Revision, total); err != nil {
			return nil, err
		}
	}
	return total, nil
}

// each adds the usage of each object at a revision.
func (r *Resource) each(ctx context.Context, kv clientv3.KV, namespace string, revision int64, total *quota.Total) error {
	prefix := r.Prefix + namespace + "/"
	key, end := prefix, clientv3.GetPrefixRangeEnd(prefix)
	for {
		response, err := kv.Get(ctx, key, clientv3.WithRange(end), clientv3.WithRev(revision), clientv3.WithLimit(countPage))
		if err != nil {
			return err
		}
		for _, kv := range response.Kvs {
			obj, err := r.decode(ctx, kv)
			if err != nil {
				// When it is deleted, the quotas are counted again.
				klog.FromContext(ctx).Error(err, "An object that cannot be read is counted for a resource quota only as one object")
				total.AddCount(r.GroupResource, 1)
				continue
			}
			total.Add(quota.Of(r.GroupResource, obj))
		}
		if !response.More {
			return nil
		}
		key = string(response.Kvs[len(response.Kvs)-1].Key) + "\x00"
	}
}
