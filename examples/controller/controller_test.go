// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"os"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/borough-io/borough/boroughtest"
	"github.com/borough-io/borough/examples/controller"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Background())
	os.Exit(boroughtest.Main(m))
}

// TestNamespaceDeletion deletes Namespaces, and checks that their Pods are backed up before
// the Namespaces are removed.
func TestNamespaceDeletion(t *testing.T) {
	s := boroughtest.Shared(t)
	client := newClient(t, s.Config())
	backups := startController(t, s)
	for name, disturb := range map[string]func(testing.TB){
		"undisturbed": func(testing.TB) {},
		"crash":       s.Crash,
	} {
		// At its end, the Namespace is deleted and removed.
		t.Run(name, func(t *testing.T) {
			err := client.Create(t.Context(), &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace(t), Name: name, Finalizers: []string{controller.Finalizer}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			disturb(t)
		})
		if _, ok := backups.Load(name); !ok {
			t.Errorf("there is no backup of the Pod %s", name)
		}
	}
}

// startController runs the controller until the test ends, as a user who has only the rights
// that it needs. It returns the names of the Pods that are backed up.
func startController(t *testing.T, s *boroughtest.Server) *sync.Map {
	t.Helper()
	const user = "backup-controller"
	admin := newClient(t, s.Config())
	for _, object := range []client.Object{
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: user},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch", "patch"}}},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		},
	} {
		if err := admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := admin.Delete(context.Background(), object); err != nil {
				t.Error(err)
			}
		})
	}

	manager, err := ctrl.NewManager(s.As(t, user), ctrl.Options{
		Metrics:    server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)}, // for go test -count=2
	})
	if err != nil {
		t.Fatal(err)
	}
	backups := &sync.Map{}
	reconciler := &controller.Reconciler{Client: manager.GetClient(), Backup: func(_ context.Context, pod *corev1.Pod) error {
		backups.Store(pod.Name, true)
		return nil
	}}
	if err := reconciler.SetupWithManager(manager); err != nil {
		t.Fatal(err)
	}
	// A controller that finds the server down while it sets up its informer would try again
	// only after 10 seconds.
	if _, err := manager.GetCache().GetInformer(t.Context(), &corev1.Pod{}); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- manager.Start(t.Context()) }()
	t.Cleanup(func() {
		if err := <-stopped; err != nil {
			t.Errorf("run the manager: %v", err)
		}
	})
	return backups
}

func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
