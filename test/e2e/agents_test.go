// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

// agent is a second agent, as in the original design of Kubernetes' namespaces.
// It has a separate store with items for each Namespace. When a Namespace is
// terminating, the agent deletes its items, then removes its finalizer. It shares
// only the API with the controller.
type agent struct {
	finalizer v1.FinalizerName
	client    versioned.Interface

	mu    sync.Mutex
	store map[string]int // number of items by Namespace
}

func (a *agent) items(ns string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.store[ns]
}

// run runs the agent until the context ends.
func (a *agent) run(ctx context.Context) error {
	namespaces := a.client.TenancyV1().Namespaces()
	watcher, err := namespaces.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("watch the Namespaces: %w", err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		ns, ok := event.Object.(*v1.Namespace)
		if !ok || event.Type == watch.Deleted || ns.Status.Phase != v1.NamespaceTerminating || !slices.Contains(ns.Spec.Finalizers, a.finalizer) {
			continue
		}
		a.mu.Lock()
		delete(a.store, ns.Name)
		a.mu.Unlock()
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			latest, err := namespaces.Get(ctx, ns.Name, metav1.GetOptions{})
			if err != nil || latest.UID != ns.UID {
				return err
			}
			latest.Spec.Finalizers = slices.DeleteFunc(latest.Spec.Finalizers, func(f v1.FinalizerName) bool { return f == a.finalizer })
			_, err = namespaces.Finalize(ctx, latest.Name, latest, metav1.UpdateOptions{})
			return err
		})
		if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
			return fmt.Errorf("finalize %s: %w", ns.Name, err)
		}
	}
	return nil
}

// TestFinalizeByUID sends finalizers with the UID of another Namespace of the same name, which
// was removed. They change nothing.
func TestFinalizeByUID(t *testing.T) {
	t.Parallel()
	http := borough.HTTP(t)
	name := newNamespace(t, borough)
	ns, err := borough.Client(t).TenancyV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for method, created := range map[string]int{"PUT": 200, "POST": 201} {
		for uid, code := range map[string]int{"another": 409, string(ns.UID): created} {
			body := fmt.Sprintf(`{"metadata":{"name":%q,"uid":%q},"spec":{"finalizers":["example.com/%s","kubernetes"]}}`, name, uid, uid)
			answer := http.Do(t, method, api+"/namespaces/"+name+"/finalize", []byte(body), "Content-Type", asJSON)
			if answer.Code != code {
				t.Errorf("%s with the UID %s: got %v, want code %d", method, uid, answer, code)
			}
		}
	}
}

// TestTwoAgents is the example of the original design: a Namespace is removed
// when both of its agents have deleted their data.
func TestTwoAgents(t *testing.T) {
	t.Parallel()
	const finalizer = v1.FinalizerName("example.com/origin") // the agent also removes it from the Namespaces of other tests
	namespaces := borough.Client(t).TenancyV1().Namespaces()
	ns, err := namespaces.Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "two-agents-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	createPod(t, borough, ns.Name, newPod("p"))
	origin := &agent{finalizer: finalizer, client: newAgentClient(t), store: map[string]int{ns.Name: 3, "other": 1}}
	ns.Spec.Finalizers = append(ns.Spec.Finalizers, finalizer)
	if ns, err = origin.client.TenancyV1().Namespaces().Finalize(t.Context(), ns.Name, ns, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}

	// The controller removes the content and its finalizer, not the Namespace.
	deleteNamespace(t, borough, ns.Name)
	poll.Eventually(t, func() string {
		got, err := namespaces.Get(t.Context(), ns.Name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if !slices.Equal(got.Spec.Finalizers, []v1.FinalizerName{finalizer}) {
			return fmt.Sprintf("got the finalizers %v, want only the second agent's", got.Spec.Finalizers)
		}
		return ""
	})
	wantNoContent(t, borough, ns.Name)
	wantEqual(t, "items in the agent's store", origin.items(ns.Name), 3)

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- origin.run(ctx) }()
	poll.Eventually(t, gone(t, borough, ns.Name))
	cancel()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	wantEqual(t, "items in the agent's store", origin.items(ns.Name), 0)
	wantEqual(t, "items of another Namespace", origin.items("other"), 1)
}

// newAgentClient returns a client of a user that has only the documented rights of an agent.
func newAgentClient(t *testing.T) versioned.Interface {
	t.Helper()
	manifest, err := harness.Documented("concepts/namespace-lifecycle.md", "agent-rights")
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict([]byte(manifest), &role); err != nil {
		t.Fatalf("decode the ClusterRole: %v", err)
	}
	const user = "two-agents:origin"
	if _, err := rights(t, borough).ClusterRoles().Create(t.Context(), &role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if _, err := rights(t, borough).ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return clientAs(t, borough, user)
}
