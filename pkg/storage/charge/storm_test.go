// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package charge_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/test/harness"
)

// stormNamespaces are those of the storm. The prefix of one is that of another.
var stormNamespaces = []string{"a", "ab"}

// storm writes Pods, LimitRanges and ResourceQuotas through two servers.
type storm struct {
	client  *clientv3.Client
	servers [2]storagetest.Stores
	// unanswered is whether etcd does not answer some transactions.
	unanswered bool

	carriedOut, denied atomic.Int64
}

// TestStorm writes at random, and then compares the usage of the quotas at every
// revision in the history of etcd with the objects.
func TestStorm(t *testing.T) {
	member := storagetest.StartEmbedded(t)
	s := &storm{client: member.Client()}
	s.run(t, storage.NewOptions(), storagetest.NewConfig(member))
}

// TestStormUnanswered is a storm in which etcd does not answer some transactions, which
// it has carried out or not, and clients do not wait for some answers.
func TestStormUnanswered(t *testing.T) {
	var n atomic.Int64
	url := storagetest.StartGRPC(t, func(c *embed.Config) {
		intercept := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			if _, ok := req.(*etcdserverpb.TxnRequest); !ok || n.Add(1)%100 != 0 {
				return handler(ctx, req)
			}
			if n.Load()%200 == 0 {
				_, _ = handler(ctx, req)
			}
			return nil, rpctypes.ErrGRPCTimeoutDueToLeaderFail
		}
		c.GRPCAdditionalServerOptions = append(c.GRPCAdditionalServerOptions, grpc.ChainUnaryInterceptor(intercept))
	})
	client := storagetest.NewClient(t, url)
	options := storage.NewOptions()
	options.Etcd.StorageConfig.Transport.ServerList = []string{url}
	s := &storm{client: client, unanswered: true}
	s.run(t, options, storagetest.NewConfig(nil))
}

func (s *storm) run(t *testing.T, options *storage.Options, config storage.Config) {
	// Of each writer, and of all. On average they make more than twice as many charges: how
	// many depends on which quotas there are, by chance.
	writes, minCharges := 750, 500
	if testing.Short() || harness.RaceEnabled { // the race detector makes each write cost more
		writes, minCharges = 400, 200
	}
	for i := range s.servers {
		s.servers[i] = storagetest.NewStores(t, options, config)
	}
	for _, name := range stormNamespaces {
		ns := &tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := create(genericrequest.WithNamespace(t.Context(), metav1.NamespaceNone), s.servers[0].Namespaces, ns); err != nil {
			t.Fatal(err)
		}
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var writers sync.WaitGroup
	for i := range uint64(12) {
		writers.Go(func() {
			r := rand.New(rand.NewPCG(seed, i))
			for range writes {
				if err := s.writeOrCancel(t.Context(), &s.servers[i%2], r); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
	h := newHistory(t, s.servers[0])
	h.replay(t, s.client)
	t.Logf("%d writes carried out, %d denied; %d revisions, %d with a counted quota, %d charges", s.carriedOut.Load(), s.denied.Load(), h.revisions, h.compared, h.charges)
	if s.denied.Load() == 0 || h.charges < minCharges {
		t.Error("the storm has not shown anything")
	}
}

// writeOrCancel sends one write, whose request may end early if answers get lost.
func (s *storm) writeOrCancel(ctx context.Context, server *storagetest.Stores, r *rand.Rand) error {
	if !s.unanswered || r.IntN(20) > 0 {
		return s.write(ctx, server, r)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(r.IntN(5000))*time.Microsecond)
	defer cancel()
	if err := s.write(ctx, server, r); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// write sends one write.
func (s *storm) write(ctx context.Context, server *storagetest.Stores, r *rand.Rand) error {
	namespace := stormNamespaces[r.IntN(len(stormNamespaces))]
	ctx = genericrequest.WithNamespace(ctx, namespace)
	meta := metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("p%d", r.IntN(30))}
	var err error
	switch n := r.IntN(100); {
	case n < 40:
		err = create(ctx, server.Pods, pod(meta, r))
	case n < 55:
		_, _, err = server.Pods.Delete(ctx, meta.Name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	case n < 80:
		err = update(ctx, server.Pods, meta.Name, func(pod *tenancy.Pod) { changePod(pod, r) })
	case n < 85:
		err = create(ctx, server.LimitRanges, &tenancy.LimitRange{ObjectMeta: meta})
	case n < 90:
		_, _, err = server.LimitRanges.Delete(ctx, meta.Name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
	default:
		meta.Name = fmt.Sprintf("q%d", r.IntN(3))
		err = writeQuota(ctx, server.ResourceQuotas, meta, r)
	}
	switch {
	case err == nil:
		s.carriedOut.Add(1)
	case apierrors.IsForbidden(err) && (strings.Contains(err.Error(), "exceeded quota") || strings.Contains(err.Error(), "must specify")):
		s.denied.Add(1)
	case s.unanswered && strings.Contains(err.Error(), rpctypes.ErrTimeoutDueToLeaderFail.Error()):
		// The outcome is unknown if another client has written the object since.
	case !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err):
		return fmt.Errorf("write %s in %s: %w", meta.Name, namespace, err)
	}
	return nil
}

func pod(meta metav1.ObjectMeta, r *rand.Rand) *tenancy.Pod {
	pod := &tenancy.Pod{ObjectMeta: meta}
	container := corev1.Container{Name: "c"}
	if r.IntN(10) > 0 {
		container.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(r.Int64N(1000), resource.DecimalSI)}
	}
	pod.Spec.Containers = []corev1.Container{container}
	return pod
}

// changePod changes what a Pod uses, or nothing that counts.
func changePod(pod *tenancy.Pod, r *rand.Rand) {
	switch r.IntN(5) {
	case 0:
		pod.Labels = map[string]string{"changed": fmt.Sprint(r.Int())}
	case 1:
		pod.Status.Phase = []corev1.PodPhase{corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed}[r.IntN(3)]
	case 2:
		pod.Spec.ActiveDeadlineSeconds = []*int64{nil, new(int64(10))}[r.IntN(2)]
	default:
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(r.Int64N(1000), resource.DecimalSI)}
	}
}

// writeQuota creates, changes or deletes a quota.
func writeQuota(ctx context.Context, store *genericregistry.Store, meta metav1.ObjectMeta, r *rand.Rand) error {
	hard := corev1.ResourceList{}
	for name, most := range map[corev1.ResourceName]int64{"pods": 12, "count/pods": 20, "requests.cpu": 6, "count/limitranges": 10, "count/resourcequotas": 5} {
		if r.IntN(2) == 0 {
			hard[name] = *resource.NewQuantity(1+r.Int64N(most), resource.DecimalSI)
		}
	}
	switch r.IntN(4) {
	case 0:
		_, _, err := store.Delete(ctx, meta.Name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
		return err
	case 1: // other values of the same resources, as the strategy of the kind does it
		return update(ctx, store, meta.Name, func(quota *tenancy.ResourceQuota) {
			for name := range quota.Spec.Hard {
				quota.Spec.Hard[name] = *resource.NewQuantity(1+r.Int64N(20), resource.DecimalSI)
			}
			quota.Status.Hard = quota.Spec.Hard
		})
	case 2:
		return update(ctx, store, meta.Name, func(quota *tenancy.ResourceQuota) {
			quota.Spec.Hard = hard
			quota.Status = corev1.ResourceQuotaStatus{Hard: hard}
		})
	}
	quota := &tenancy.ResourceQuota{ObjectMeta: meta, Spec: corev1.ResourceQuotaSpec{Hard: hard}, Status: corev1.ResourceQuotaStatus{Hard: hard}}
	if r.IntN(3) == 0 {
		delete(hard, "count/limitranges")
		quota.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeTerminating}
	}
	return create(ctx, store, quota)
}

func create(ctx context.Context, store *genericregistry.Store, obj runtime.Object) error {
	_, err := store.Create(ctx, obj, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	return err
}

func update[T runtime.Object](ctx context.Context, store *genericregistry.Store, name string, change func(T)) error {
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		changed := old.DeepCopyObject().(T)
		if accessor, err := meta.Accessor(changed); err != nil || accessor.GetName() == "" {
			return nil, apierrors.NewNotFound(store.DefaultQualifiedResource, name)
		}
		change(changed)
		return changed, nil
	})
	_, _, err := store.Update(ctx, name, info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return err
}

// keyOf returns the resource, the Namespace and the name in a key of content.
func keyOf(key string) (resource, namespace, name string, ok bool) {
	dir, name := path.Split(key)
	dir, namespace = path.Split(path.Clean(dir))
	resource = path.Base(dir)
	return resource, namespace, name, resource == "pods" || resource == "limitranges" || resource == "resourcequotas"
}
