// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package ha

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/borough-io/borough/test/kubernetes/testcluster"
)

const leaseName = "borough-controller-manager"

// leases is the history of the leader election Lease.
type leases struct {
	mu      sync.Mutex
	history []*coordinationv1.Lease
}

func watchLeases(t *testing.T, cluster *testcluster.Cluster) *leases {
	t.Helper()
	l := &leases{}
	factory := informers.NewSharedInformerFactoryWithOptions(cluster.Client(t), 0,
		informers.WithNamespace(testcluster.SystemNamespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("metadata.name", leaseName).String()
		}))
	informer := factory.Coordination().V1().Leases().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { l.add(object.(*coordinationv1.Lease)) },
		UpdateFunc: func(_, object any) { l.add(object.(*coordinationv1.Lease)) },
	})
	if err != nil {
		t.Fatalf("watch the Lease: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	factory.Start(ctx.Done())
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
	})
	factory.WaitForCacheSync(ctx.Done())
	return l
}

func (l *leases) add(lease *coordinationv1.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.history = append(l.history, lease)
}

// now returns the length of the history, for awaitMove.
func (l *leases) now() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.history) - 1
}

// move describes how another controller took over the Lease.
type move struct {
	// released means that the previous holder released it.
	released bool
	// gap is the time without a renewal.
	gap time.Duration
}

func (m move) String() string {
	how := "ran out"
	if m.released {
		how = "was given back"
	}
	return fmt.Sprintf("the Lease %s and was acquired by the other controller %s after its last renewal", how, m.gap.Round(time.Millisecond))
}

// awaitMove waits until another controller leads than at index then. There must
// be only one change.
func (l *leases) awaitMove(ctx context.Context, then int) (m move, err error) {
	err = await(ctx, func(context.Context) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		first, last := l.history[then], l.history[len(l.history)-1]
		if holder(last) == "" || holder(last) == holder(first) {
			return fmt.Errorf("the Lease is held by %q, before by %q", holder(last), holder(first))
		}
		if before, now := *first.Spec.LeaseTransitions, *last.Spec.LeaseTransitions; now != before+1 {
			return fmt.Errorf("the Lease changed holders %d times, before %d times", now, before)
		}
		for _, lease := range l.history[then:] {
			switch holder(lease) {
			case holder(first):
				m.gap = last.Spec.AcquireTime.Sub(lease.Spec.RenewTime.Time)
			case "":
				m.released = true
			}
		}
		return nil
	})
	return m, err
}

func holder(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}
