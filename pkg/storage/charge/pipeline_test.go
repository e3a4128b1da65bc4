// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package charge_test

import (
	"context"
	"fmt"
	"path"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/storagetest"
)

// TestPipeline sends the transactions of three Pods before etcd has carried out the
// first, and lets something happen to that.
func TestPipeline(t *testing.T) {
	for name, test := range map[string]struct {
		// before happens while the transactions are on their way.
		before func(f *pipelineFixture)
		// first is what happens to the first transaction, after which the others arrive.
		first func(carryOut carryOut) (any, error)
		// overtaken lets the others arrive before the first.
		overtaken bool
		// cancels ends the request of the first Pod before its transaction arrives.
		cancels bool
		want    func(error) bool // of the first Pod
		pods    int64
	}{
		"carried out":                 {first: carryOut.do, pods: 3},
		"overtaken":                   {first: carryOut.do, overtaken: true, pods: 3},
		"not answered":                {first: carryOut.loseAnswer, pods: 3},
		"not received":                {first: carryOut.lose, pods: 3},
		"request ended":               {first: carryOut.do, cancels: true, want: failed, pods: 3},
		"request ended, not received": {first: carryOut.lose, cancels: true, want: failed, pods: 2},
		"exists": {
			before: func(f *pipelineFixture) { f.create(1, "p0") },
			first:  carryOut.do, want: apierrors.IsAlreadyExists, pods: 3,
		},
		// The version of the quota is then the one that the first Pod would have left.
		"another server was first": {
			before: func(f *pipelineFixture) { f.create(1, "other-than-predicted") },
			first:  carryOut.do, pods: 4,
		},
		"the quota was changed": {
			before: func(f *pipelineFixture) { f.changeQuota() },
			first:  carryOut.do, pods: 3,
		},
		"the quota was created again": {
			before: func(f *pipelineFixture) {
				f.deleteQuota()
				f.createQuota("q")
			},
			first: carryOut.do, pods: 3,
		},
		"another quota was created": {
			before: func(f *pipelineFixture) { f.createQuota("r") },
			first:  carryOut.do, pods: 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newPipelineFixture(t)
			f.createQuota("q")
			const warmUp = 5 // so that three transactions may be in flight
			for i := range warmUp {
				f.create(0, fmt.Sprint("w", i))
			}

			var gates [3]*gate
			errs := make([]error, len(gates))
			ctx, cancel := context.WithCancel(f.ctx)
			defer cancel()
			var creates sync.WaitGroup
			for i := range gates {
				name := fmt.Sprint("p", i)
				gates[i] = f.gate(name)
				ctx := ctx
				if i > 0 {
					ctx = f.ctx
				}
				creates.Go(func() { errs[i] = create(ctx, f.servers[0].Pods, newPod(name)) })
				f.receive(gates[i].arrived)
			}
			if test.before != nil {
				test.before(f)
			}
			if test.cancels {
				cancel()
			}
			order := []int{0, 1, 2}
			if test.overtaken {
				order = []int{2, 1, 0}
			}
			for _, i := range order {
				rule := carryOut.do
				if i == 0 {
					rule = test.first
				}
				gates[i].open <- rule
				f.receive(gates[i].passed)
			}
			creates.Wait()
			for i, err := range errs {
				if i == 0 && test.want != nil {
					if !test.want(err) {
						t.Errorf("the first Pod: %v", err)
					}
				} else if err != nil {
					t.Errorf("Pod %d: %v", i, err)
				}
			}
			f.wantUsed(warmUp + test.pods)
			newHistory(t, f.servers[0]).replay(t, f.client)
		})
	}
}

// TestSlowAdmission creates a Pod while admission of an update or a delete of the quota takes
// its time, and has to be repeated because the quota has been charged.
func TestSlowAdmission(t *testing.T) {
	for name, write := range map[string]func(f *pipelineFixture, admit func() error) error{
		"update": func(f *pipelineFixture, admit func() error) error {
			info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
				changed := old.DeepCopyObject().(*tenancy.ResourceQuota)
				changed.Labels = map[string]string{"changed": "true"}
				return changed, admit()
			})
			_, _, err := f.servers[0].ResourceQuotas.Update(f.ctx, "q", info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
			return err
		},
		"delete": func(f *pipelineFixture, admit func() error) error {
			_, _, err := f.servers[0].ResourceQuotas.Delete(f.ctx, "q", func(context.Context, runtime.Object) error { return admit() }, &metav1.DeleteOptions{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newPipelineFixture(t)
			f.createQuota("q")
			f.create(0, "before")
			calls := 0
			admit := func() error {
				if calls++; calls > 1 {
					return nil
				}
				ctx, cancel := context.WithTimeout(f.ctx, time.Minute)
				defer cancel()
				return create(ctx, f.servers[0].Pods, newPod("between"))
			}
			if err := write(f, admit); err != nil {
				t.Fatal(err)
			}
			if name == "update" {
				f.wantUsed(2)
			}
			f.create(0, "after")
		})
	}
}

func failed(err error) bool { return err != nil }

// carryOut carries out a transaction.
type carryOut func() (any, error)

func (c carryOut) do() (any, error) { return c() }

func (c carryOut) loseAnswer() (any, error) {
	if _, err := c(); err != nil {
		return nil, err
	}
	return nil, rpctypes.ErrGRPCTimeoutDueToLeaderFail
}

func (c carryOut) lose() (any, error) { return nil, rpctypes.ErrGRPCTimeoutDueToLeaderFail }

// gate holds up the next transaction that writes a Pod.
type gate struct {
	arrived, passed chan struct{}
	open            chan func(carryOut) (any, error)
}

// TestChangeDuringCount changes a quota while a server counts it: the count must not replace
// the change.
func TestChangeDuringCount(t *testing.T) {
	f := newPipelineFixture(t)
	f.create(0, "p")
	created := f.gate("q")
	var creates sync.WaitGroup
	creates.Go(func() { f.createQuota("q") })
	f.receive(created.arrived)
	counted := f.gate("q")
	created.open <- carryOut.do
	f.receive(counted.arrived)
	err := update(f.ctx, f.servers[0].ResourceQuotas, "q", func(quota *tenancy.ResourceQuota) {
		quota.Labels = map[string]string{"changed": "true"}
	})
	if err != nil {
		t.Fatal(err)
	}
	counted.open <- carryOut.do
	creates.Wait()
	f.wantUsed(1)
	obj, err := f.servers[0].ResourceQuotas.Get(f.ctx, "q", &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if labels := obj.(*tenancy.ResourceQuota).Labels; labels["changed"] != "true" {
		t.Errorf("the count has replaced the change: %v", labels)
	}
}

// pipelineFixture has two servers on an etcd with gates.
type pipelineFixture struct {
	t       *testing.T
	ctx     context.Context
	client  *clientv3.Client
	servers [2]storagetest.Stores

	mu     sync.Mutex
	gates  map[string]*gate // by name of the Pod
	writes map[string]int   // the transactions that write a Pod
}

func newPipelineFixture(t *testing.T, change ...func(*storage.Options)) *pipelineFixture {
	f := &pipelineFixture{t: t, ctx: genericrequest.WithNamespace(t.Context(), "a"), gates: map[string]*gate{}, writes: map[string]int{}}
	url := storagetest.StartGRPC(t, func(c *embed.Config) {
		c.GRPCAdditionalServerOptions = append(c.GRPCAdditionalServerOptions, grpc.ChainUnaryInterceptor(f.intercept))
	})
	options := storage.NewOptions()
	options.Etcd.StorageConfig.Transport.ServerList = []string{url}
	for _, c := range change {
		c(options)
	}
	for i := range f.servers {
		f.servers[i] = storagetest.NewStores(t, options, storagetest.NewConfig(nil))
	}
	f.client = storagetest.NewClient(t, url)
	ns := &tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	if err := create(genericrequest.WithNamespace(t.Context(), metav1.NamespaceNone), f.servers[0].Namespaces, ns); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *pipelineFixture) intercept(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	g := f.gateOf(req)
	if g == nil {
		return handler(ctx, req)
	}
	close(g.arrived)
	defer close(g.passed)
	rule := carryOut.do
	select {
	case rule = <-g.open:
	case <-f.ctx.Done():
	}
	// Etcd may carry out what the client no longer waits for.
	return rule(func() (any, error) { return handler(context.WithoutCancel(ctx), req) })
}

func (f *pipelineFixture) gateOf(req any) *gate {
	txn, ok := req.(*etcdserverpb.TxnRequest)
	if !ok || len(txn.Success) == 0 {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	name := path.Base(string(txn.Success[0].GetRequestPut().GetKey()))
	f.writes[name]++
	g := f.gates[name]
	delete(f.gates, name)
	return g
}

func (f *pipelineFixture) gate(name string) *gate {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gates[name] = &gate{arrived: make(chan struct{}), passed: make(chan struct{}), open: make(chan func(carryOut) (any, error))}
	return f.gates[name]
}

func (f *pipelineFixture) receive(events <-chan struct{}) {
	f.t.Helper()
	select {
	case <-events:
	case <-time.After(time.Minute):
		f.t.Fatal("the transaction has not arrived")
	}
}

// newPod returns a Pod that requests as much as its name is long.
func newPod(name string) *tenancy.Pod {
	requests := corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64(len(name)), resource.DecimalSI)}
	return &tenancy.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "a"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: requests}}}},
	}
}

func (f *pipelineFixture) create(server int, pod string) {
	f.t.Helper()
	if err := create(f.ctx, f.servers[server].Pods, newPod(pod)); err != nil {
		f.t.Fatal(err)
	}
}

// The quotas are changed by the server that does not hold up Pods.

func (f *pipelineFixture) createQuota(name string) {
	f.t.Helper()
	hard := corev1.ResourceList{"pods": resource.MustParse("1000"), "requests.cpu": resource.MustParse("1000")}
	quota := &tenancy.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "a"},
		Spec:       corev1.ResourceQuotaSpec{Hard: hard}, Status: corev1.ResourceQuotaStatus{Hard: hard},
	}
	if err := create(f.ctx, f.servers[1].ResourceQuotas, quota); err != nil {
		f.t.Fatal(err)
	}
}

func (f *pipelineFixture) changeQuota() {
	f.t.Helper()
	err := update(f.ctx, f.servers[1].ResourceQuotas, "q", func(quota *tenancy.ResourceQuota) {
		quota.Spec.Hard["pods"] = resource.MustParse("100")
		quota.Status.Hard = quota.Spec.Hard
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *pipelineFixture) deleteQuota() {
	f.t.Helper()
	if _, _, err := f.servers[1].ResourceQuotas.Delete(f.ctx, "q", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *pipelineFixture) wantUsed(pods int64) {
	f.t.Helper()
	obj, err := f.servers[0].ResourceQuotas.Get(f.ctx, "q", &metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	used := obj.(*tenancy.ResourceQuota).Status.Used["pods"]
	if used.Value() != pods {
		f.t.Errorf("%d Pods are counted, want %d", used.Value(), pods)
	}
}
