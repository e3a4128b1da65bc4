// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package charge_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/quota"
	"github.com/borough-io/borough/pkg/storage/charge"
	"github.com/borough-io/borough/pkg/storage/precondition"
	"github.com/borough-io/borough/pkg/storage/stored"
)

// TestCountAfterUnanswered creates a quota whose create etcd carries out and does not
// answer.
func TestCountAfterUnanswered(t *testing.T) {
	f := newPipelineFixture(t)
	f.create(0, "p")
	gate := f.gate("q")
	go func() { gate.open <- carryOut.loseAnswer }()
	f.createQuota("q")
	f.wantUsed(1)
}

// TestCountPages counts more Pods than are read at once.
func TestCountPages(t *testing.T) {
	f := newPipelineFixture(t)
	const pods = 501
	for i := range pods {
		f.create(0, fmt.Sprint("p", i))
	}
	f.createQuota("q")
	f.wantUsed(pods)
}

// keyService is a transformer whose key service answers for all keys but one.
type keyService struct {
	value.Transformer
	unavailable string // the end of the key
}

func (s *keyService) TransformFromStorage(ctx context.Context, data []byte, key value.Context) ([]byte, bool, error) {
	if s.unavailable != "" && strings.HasSuffix(string(key.AuthenticatedData()), s.unavailable) {
		return nil, false, fmt.Errorf("decrypt the key: %w", status.Error(codes.Unavailable, "the key service does not answer"))
	}
	return s.Transformer.TransformFromStorage(ctx, data, key)
}

// newUncounted writes the quota q, whose usage is not known, and returns a Charger that can
// count it.
func newUncounted(t *testing.T, f *pipelineFixture, transformer value.Transformer) *charge.Charger {
	t.Helper()
	codecs := newHistory(t, f.servers[0]).codecs
	resources := make([]stored.Resource, 0, len(codecs))
	for name, codec := range codecs {
		resources = append(resources, stored.Resource{GroupResource: tenancy.Resource(name), Prefix: "/registry/tenancy.borough.io/" + name + "/", Codec: codec, Transformer: transformer})
	}
	charger, err := charge.New(resources, func(context.Context, string, int64) []runtime.Object { return nil })
	if err != nil {
		t.Fatal(err)
	}
	hard := corev1.ResourceList{"pods": resource.MustParse("2")}
	data, err := runtime.Encode(codecs["resourcequotas"], &tenancy.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "q", Namespace: "a", UID: "u"},
		Spec:       corev1.ResourceQuotaSpec{Hard: hard}, Status: corev1.ResourceQuotaStatus{Hard: hard},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.client.Put(f.ctx, "/registry/tenancy.borough.io/resourcequotas/a/q", string(data)); err != nil {
		t.Fatal(err)
	}
	return charger
}

// TestCountDuringOutage counts a quota while an object cannot be decrypted, and again when
// it can.
func TestCountDuringOutage(t *testing.T) {
	f := newPipelineFixture(t)
	f.create(0, "one")
	f.create(0, "two")
	service := &keyService{identity.NewEncryptCheckTransformer(), "/pods/a/two"}
	charger := newUncounted(t, f, service)
	charger.Count(f.ctx, clientv3.NewKV(f.client), "a")
	obj, err := f.servers[0].ResourceQuotas.Get(f.ctx, "q", &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if used := obj.(*tenancy.ResourceQuota).Status.Used; len(used) > 0 {
		t.Errorf("during the outage %v is counted", used)
	}
	service.unavailable = ""
	charger.Count(f.ctx, clientv3.NewKV(f.client), "a")
	f.wantUsed(2)
}

// electing is an etcd whose members elect a leader during its first transactions.
type electing struct {
	clientv3.KV
	transactions int
}

func (e *electing) Txn(ctx context.Context) clientv3.Txn {
	if e.transactions--; e.transactions < 0 {
		return e.KV.Txn(ctx)
	}
	return unansweredTxn{e.KV.Txn(ctx)}
}

type unansweredTxn struct{ clientv3.Txn }

func (t unansweredTxn) If(...clientv3.Cmp) clientv3.Txn        { return t }
func (t unansweredTxn) Then(...clientv3.Op) clientv3.Txn       { return t }
func (t unansweredTxn) Commit() (*clientv3.TxnResponse, error) { return nil, rpctypes.ErrLeaderChanged }

// TestCountDuringElection counts a quota. In a Namespace without further writes, it would
// remain uncounted.
func TestCountDuringElection(t *testing.T) {
	for transactions := range 4 { // one reads the quotas, one counts the objects, and one writes the usage
		t.Run(fmt.Sprint(transactions), func(t *testing.T) {
			f := newPipelineFixture(t)
			f.create(0, "one")
			charger := newUncounted(t, f, identity.NewEncryptCheckTransformer())
			charger.Count(f.ctx, &electing{clientv3.NewKV(f.client), transactions}, "a")
			f.wantUsed(1)
		})
	}
}

// TestReadDuringElection reads quotas, as dry runs do.
func TestReadDuringElection(t *testing.T) {
	f := newPipelineFixture(t)
	charger := newUncounted(t, f, identity.NewEncryptCheckTransformer())
	denial, err := charger.CheckUpdate(f.ctx, &electing{clientv3.NewKV(f.client), 1}, tenancy.Resource("resourcequotas"), "a", "q", charge.MaxQuotasSize+1)
	if denial == nil || err != nil {
		t.Errorf("got %v, %v", denial, err)
	}
}

// TestCheckOfUncounted checks, as a dry run does, what a quota allows whose usage is not known.
func TestCheckOfUncounted(t *testing.T) {
	f := newPipelineFixture(t)
	f.create(0, "one")
	pods := tenancy.Resource("pods")
	change := &quota.Change{Resource: pods, New: quota.Of(pods, newPod("another"))}
	charger := newUncounted(t, f, identity.NewEncryptCheckTransformer())
	if denial, err := charger.Check(f.ctx, clientv3.NewKV(f.client), "a", change); denial != nil || err != nil {
		t.Errorf("with one Pod: got %v, %v", denial, err)
	}
	f.wantUsed(1)
	f.create(0, "two")
	charger = newUncounted(t, f, identity.NewEncryptCheckTransformer())
	if denial, err := charger.Check(f.ctx, clientv3.NewKV(f.client), "a", change); !denial.Exceeded() || err != nil {
		t.Errorf("with two Pods: got %v, %v", denial, err)
	}
}

// TestCountOfUnreadable counts Pods that cannot be read. That is one line in the log, however
// many there are: after the deletion of each, the others are counted again.
func TestCountOfUnreadable(t *testing.T) {
	f := newPipelineFixture(t)
	for i := range 3 {
		name := fmt.Sprint("p", i)
		f.create(0, name)
		if _, err := f.client.Put(f.ctx, "/registry/tenancy.borough.io/pods/a/"+name, "unreadable"); err != nil {
			t.Fatal(err)
		}
	}
	f.create(0, "readable")
	var logged []string
	f.ctx = klog.NewContext(f.ctx, funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}))
	f.createQuota("q")
	f.wantUsed(1)
	if len(logged) != 1 || !strings.Contains(logged[0], `"objects"=3`) {
		t.Errorf("logged %q", logged)
	}
}

// TestRestoredQuota creates a Pod after a quota, which could not be read at the last count,
// has been restored.
func TestRestoredQuota(t *testing.T) {
	f := newPipelineFixture(t)
	f.createQuota("q")
	f.createQuota("r")
	const key = "/registry/tenancy.borough.io/resourcequotas/a/q"
	response, err := f.client.Get(f.ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	put := func(value string) {
		t.Helper()
		if _, err := f.client.Put(f.ctx, key, value); err != nil {
			t.Fatal(err)
		}
	}
	put("unreadable")
	err = update(f.ctx, f.servers[1].ResourceQuotas, "r", func(quota *tenancy.ResourceQuota) {
		quota.Labels = map[string]string{"changed": ""}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := create(f.ctx, f.servers[0].Pods, newPod("p")); !apierrors.IsInternalError(err) {
		t.Errorf("while the quota cannot be read: %v", err)
	}
	put(string(response.Kvs[0].Value))
	for i, server := range f.servers {
		if err := create(f.ctx, server.Pods, newPod(fmt.Sprint("p", i))); err != nil {
			t.Errorf("after the quota was restored: %v", err)
		}
	}
	f.wantUsed(2)
}

// TestOtherRules charges a quota whose usage was computed by the rules of another version.
func TestOtherRules(t *testing.T) {
	f := newPipelineFixture(t)
	f.createQuota("q")
	f.create(0, "p")
	const key = "/registry/tenancy.borough.io/resourcequotas/a/q"
	codec := newHistory(t, f.servers[0]).codecs["resourcequotas"]
	for i, version := range []string{"", "0", "0"} {
		response, err := f.client.Get(f.ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		obj, err := runtime.Decode(codec, response.Kvs[0].Value)
		if err != nil {
			t.Fatal(err)
		}
		q := obj.(*tenancy.ResourceQuota)
		q.Status.Used["pods"] = resource.MustParse("-7")
		quota.SetRules(q, version)
		data, err := runtime.Encode(codec, q)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.client.Put(f.ctx, key, string(data)); err != nil {
			t.Fatal(err)
		}
		f.create(i%2, fmt.Sprint("p", i))
		f.wantUsed(int64(i + 2))
	}
}

// TestDeleteUnreadableQuota deletes quotas that cannot be read from a Namespace that has the
// maximum of them.
func TestDeleteUnreadableQuota(t *testing.T) {
	f := newPipelineFixture(t)
	for i := range charge.MaxQuotas {
		f.createQuota(fmt.Sprintf("q%02d", i))
	}
	for _, name := range []string{"q00", "q01"} {
		if _, err := f.client.Put(f.ctx, "/registry/tenancy.borough.io/resourcequotas/a/"+name, "unreadable"); err != nil {
			t.Fatal(err)
		}
	}
	options := &metav1.DeleteOptions{IgnoreStoreReadErrorWithClusterBreakingPotential: new(true)}
	for _, name := range []string{"q00", "q01"} { // the other one does not prevent it
		if _, _, err := f.servers[0].ResourceQuotas.GetCorruptObjDeleter().Delete(f.ctx, name, rest.ValidateAllObjectFunc, options); err != nil {
			t.Fatal(err)
		}
	}
	f.create(0, "p")
}

// TestDeleteQuota deletes quotas, one of which counts quotas, from a Namespace that has the
// maximum of them.
func TestDeleteQuota(t *testing.T) {
	f := newPipelineFixture(t)
	const quotas = "count/resourcequotas.tenancy.borough.io"
	hard := corev1.ResourceList{quotas: resource.MustParse("100")}
	for i := range charge.MaxQuotas {
		q := &tenancy.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("q%02d", i), Namespace: "a"},
			Spec:       corev1.ResourceQuotaSpec{Hard: hard}, Status: corev1.ResourceQuotaStatus{Hard: hard},
		}
		if err := create(f.ctx, f.servers[1].ResourceQuotas, q); err != nil {
			t.Fatal(err)
		}
	}
	for i, server := range f.servers {
		f.delete(server.ResourceQuotas, fmt.Sprintf("q%02d", i))
	}
	obj, err := f.servers[0].ResourceQuotas.Get(f.ctx, "q02", &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if used := obj.(*tenancy.ResourceQuota).Status.Used[quotas]; used.Value() != charge.MaxQuotas-2 {
		t.Errorf("%v quotas are counted", used.Value())
	}
}

// TestManyOperations creates a Pod in a Namespace with quotas and so many LimitRanges that etcd
// can just compare all in a transaction, and that it cannot.
func TestManyOperations(t *testing.T) {
	f := newPipelineFixture(t)
	for i := range charge.MaxQuotas {
		f.createQuota(fmt.Sprintf("q%02d", i))
	}
	const maxOperations = 128 // of etcd
	compared := maxOperations - charge.MaxQuotas - 4
	for i := range 90 {
		limits := &tenancy.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("l%02d", i), Namespace: "a"}}
		if err := create(f.ctx, f.servers[0].LimitRanges, limits); err != nil {
			t.Fatal(err)
		}
		if n := i + 1; n < compared || n > compared+1 && n < 90 {
			continue
		}
		ctx, attempt := precondition.NewAttempt(f.ctx, f.servers[0].Backend, 0)
		attempt.Require(f.limitRanges())
		if err := create(ctx, f.servers[0].Pods, newPod(fmt.Sprint("p", i))); err != nil {
			t.Errorf("with %d LimitRanges: %v", i+1, err)
		}
	}
}

// limitRanges returns those that are stored.
func (f *pipelineFixture) limitRanges() precondition.Objects {
	f.t.Helper()
	list, err := f.servers[0].LimitRanges.List(f.ctx, &internalversion.ListOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	stored := precondition.Objects{Resource: tenancy.Resource("limitranges"), Namespace: "a"}
	for _, limits := range list.(*tenancy.LimitRangeList).Items {
		revision, err := storage.APIObjectVersioner{}.ObjectResourceVersion(&limits)
		if err != nil {
			f.t.Fatal(err)
		}
		stored.Versions = append(stored.Versions, precondition.Version{Name: limits.Name, Revision: int64(revision)})
	}
	return stored
}

// TestEventsAreNotCharged checks that the writes of a resource that no quota counts are not
// charged.
func TestEventsAreNotCharged(t *testing.T) {
	resources := []stored.Resource{{GroupResource: tenancy.Resource("resourcequotas")}, {GroupResource: tenancy.Resource("pods")}, {GroupResource: corev1.Resource("events")}}
	charger, err := charge.New(resources, nil)
	if err != nil {
		t.Fatal(err)
	}
	var inner storage.Interface = &struct{ storage.Interface }{}
	for resource, want := range map[schema.GroupResource]bool{
		corev1.Resource("events"): false, tenancy.Resource("pods"): true, tenancy.Resource("namespaces"): false,
	} {
		if charged := charger.NewStore(inner, resource) != inner; charged != want {
			t.Errorf("%s are charged: %t", resource, charged)
		}
	}
}
