// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/harness/etcdproxy"
	"github.com/borough-io/borough/test/poll"
)

const (
	namespaceKeys   = "/registry/tenancy.borough.io/namespaces/"
	roleBindingKeys = "/registry/rbac.authorization.k8s.io/rolebindings/"
)

func wantLimit(t *testing.T, err error, user string, count, limit int) {
	t.Helper()
	want := fmt.Sprintf("user %q has reached the limit of namespaces created by namespacerequests: %d of %d", user, count, limit)
	if cause, ok := apierrors.StatusCause(err, v1.NamespaceLimitCause); !apierrors.IsForbidden(err) || !ok || cause.Message != want || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestNamespaceLimit reaches the limit, and requests a Namespace again when another one
// is gone.
func TestNamespaceLimit(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	if err := b.StartServer(t.Context(), "--max-namespaces-per-user=2"); err != nil {
		t.Fatal(err)
	}
	// As docs/concepts/users-and-rights.md says.
	b.Kubectl(t, "create", "clusterrolebinding", "namespace-requesters", "--clusterrole=namespace-requester", "--group=system:authenticated")
	b.Kubectl(t, "create", "clusterrole", "namespace-deleter", "--verb=delete", "--resource=namespaces.tenancy.borough.io")
	create := func(user, name string, dryRun ...string) error {
		_, err := requestsOf(t, b, user).Create(t.Context(), newRequest(name), metav1.CreateOptions{DryRun: dryRun})
		return err
	}
	for i, request := range []struct{ user, name string }{{"alice", "a"}, {"alice", "b"}, {"bob", "c"}, {"bob", "d"}} {
		if err := create(request.user, request.name, metav1.DryRunAll); err != nil {
			t.Fatalf("dry run %d: %v", i, err)
		}
		if err := create(request.user, request.name); err != nil {
			t.Fatal(err)
		}
	}
	newNamespace(t, b) // which no user has requested
	wantLimit(t, create("alice", "e"), "alice", 2, 2)
	wantLimit(t, create("alice", "e", metav1.DryRunAll), "alice", 2, 2)
	_, err := requestsOf(t, b, "alice").Create(t.Context(), &v1.NamespaceRequest{ObjectMeta: metav1.ObjectMeta{GenerateName: "e-"}}, metav1.CreateOptions{})
	wantLimit(t, err, "alice", 2, 2)

	// A Namespace counts until it is gone. There is no controller yet.
	namespaces := clientAs(t, b, "alice").TenancyV1().Namespaces()
	if err := namespaces.Delete(t.Context(), "a", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the admin of a namespace deletes it: %v", err)
	}
	b.Kubectl(t, "label", "clusterrole", "namespace-deleter", "rbac.authorization.k8s.io/aggregate-to-admin=true")
	if err := namespaces.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := namespaces.Delete(t.Context(), "c", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the admin of a namespace deletes another one: %v", err)
	}
	wantLimit(t, create("alice", "e"), "alice", 2, 2)
	if err := b.StartController(t.Context()); err != nil {
		t.Fatal(err)
	}
	poll.Eventually(t, harness.Gone(t, b.Client(t).TenancyV1().Namespaces(), "a"))
	if err := create("alice", "e"); err != nil {
		t.Errorf("after a deletion: %v", err)
	}
	wantLimit(t, create("alice", "f"), "alice", 2, 2)

	// The limit holds for the members of system:masters, too.
	admin := b.Client(t).TenancyV1().NamespaceRequests()
	for _, name := range []string{"x", "y", "z"} {
		_, err = admin.Create(t.Context(), newRequest(name), metav1.CreateOptions{})
	}
	wantLimit(t, err, "borough-admin", 2, 2)
}

// TestNamespaceLimitRace sends many requests of a user to two servers at once. Exactly
// as many as the limit are carried out, and in the history of etcd each Namespace
// appears at the same revision as its RoleBinding.
func TestNamespaceLimitRace(t *testing.T) {
	t.Parallel()
	const rounds, requests, limit = 20, 20, 3
	etcd := storagetest.StartGRPC(t)
	first, second, _ := startTwo(t, etcd, nil, fmt.Sprint("--max-namespaces-per-user=", limit))
	for round := range rounds {
		user := fmt.Sprint("user-", round)
		mayRequest(t, first, user)
		poll.Eventually(t, func() string { // the other server follows
			if _, err := requestsOf(t, second, user).Create(t.Context(), newRequest("dry-run"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
				return err.Error()
			}
			return ""
		})
		var sending sync.WaitGroup
		var created atomic.Int32
		for i := range 2 * requests {
			client := requestsOf(t, []*harness.Borough{first, second}[i%2], user)
			sending.Go(func() {
				_, err := client.Create(t.Context(), newRequest(fmt.Sprint(user, "-", i)), metav1.CreateOptions{})
				if err == nil {
					created.Add(1)
					return
				}
				wantLimit(t, err, user, limit, limit)
			})
		}
		sending.Wait()
		if got := created.Load(); got != limit {
			t.Errorf("round %d: %d requests were carried out, want %d", round, got, limit)
		}
	}

	client := storagetest.NewClient(t, etcd)
	if got := wantTogether(t, client, "user-"); got != rounds*limit {
		t.Errorf("%d namespaces in the history, want %d", got, rounds*limit)
	}
}

// wantTogether reads the history of etcd. It fails the test unless each Namespace with
// the prefix appears at the same revision as a RoleBinding in it, and returns how many
// there are.
func wantTogether(t *testing.T, client *clientv3.Client, prefix string) (namespaces int) {
	t.Helper()
	created := map[string][2]int64{}
	for _, event := range eventsOf(t, client) {
		key := string(event.Kv.Key)
		for i, keys := range []string{namespaceKeys, roleBindingKeys} {
			rest, found := strings.CutPrefix(key, keys)
			name, _, _ := strings.Cut(rest, "/")
			if found && event.IsCreate() && strings.HasPrefix(name, prefix) {
				revisions := created[name]
				if revisions[i] != 0 {
					t.Errorf("%s was created twice", key)
				}
				revisions[i] = event.Kv.ModRevision
				created[name] = revisions
			}
		}
	}
	for name, revisions := range created {
		if revisions[0] != revisions[1] {
			t.Errorf("namespace %s appears at revision %d, its rolebinding at %d", name, revisions[0], revisions[1])
		}
	}
	return len(created)
}

// TestNamespaceRequestIsCarriedOutOnce loses etcd's response to the transaction of a
// request, while another client deletes the Namespace, and before it is carried out.
func TestNamespaceRequestIsCarriedOutOnce(t *testing.T) {
	t.Parallel()
	etcd := storagetest.StartGRPC(t)
	client := storagetest.NewClient(t, etcd)

	var first *harness.Borough
	var once sync.Map // by key
	lose := func(method string, data []byte) bool {
		var request etcdserverpb.TxnRequest
		if method != etcdproxy.MethodTxn || proto.Unmarshal(data, &request) != nil || len(request.Success) < 2 {
			return false
		}
		name, requested := strings.CutPrefix(string(request.Success[0].GetRequestPut().GetKey()), namespaceKeys)
		if !requested {
			return false
		}
		if _, again := once.LoadOrStore(name, true); again {
			return false
		}
		if name == "lost-deleted" {
			if err := first.Client(t).TenancyV1().Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
		return true
	}
	var second *harness.Borough
	first, second, _ = startTwo(t, etcd, lose, "--max-namespaces-per-user=2")
	mayRequest(t, second, "alice")
	for _, name := range []string{"lost-undisturbed", "lost-deleted"} {
		created, err := requestsOf(t, second, "alice").Create(t.Context(), newRequest(name), metav1.CreateOptions{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, lost := once.Load(name); !lost {
			t.Errorf("%s: no response was lost", name)
		}
		if name == "lost-deleted" {
			continue
		}
		ns, err := clientAs(t, second, "alice").TenancyV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || ns.UID != created.Status.NamespaceUID {
			t.Errorf("%s, right after the answer: got %v, %v", name, ns, err)
		}
	}
	if got := wantTogether(t, client, "lost-"); got != 2 {
		t.Errorf("%d namespaces in the history, want 2", got)
	}
	_, err := requestsOf(t, second, "alice").Create(t.Context(), newRequest("lost-third"), metav1.CreateOptions{})
	wantLimit(t, err, "alice", 2, 2)
}
