// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"

	"github.com/borough-io/borough/test/poll"
)

// TestEvents records Events with both recorders of client-go, and reads them in both
// groups.
func TestEvents(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	client := coreClient(t, borough, "")
	pod, err := client.CoreV1().Pods(ns).Create(t.Context(), (*corev1.Pod)(newPod("web")), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()

	old := record.NewBroadcaster(record.WithContext(ctx))
	defer old.Shutdown()
	old.StartRecordingToSink(&typed.EventSinkImpl{Interface: client.CoreV1().Events(ns)})
	old.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "old"}).Event(pod, corev1.EventTypeNormal, "Pulled", "by the old recorder")

	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	defer broadcaster.Shutdown()
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		t.Fatal(err)
	}
	broadcaster.NewRecorder(scheme.Scheme, "example.com/new").Eventf(pod, nil, corev1.EventTypeWarning, "Failed", "Starting", "by the new recorder")

	poll.Eventually(t, func() string {
		list, err := client.CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(pod.UID)})
		if err != nil || len(list.Items) != 2 {
			return fmt.Sprintf("got %+v, error %v", list, err)
		}
		return ""
	})
	list, err := client.EventsV1().Events(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "reportingController=example.com/new"})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("got %+v, error %v", list, err)
	}
	wantEqual(t, "note", list.Items[0].Note, "by the new recorder")
	if list, err = client.EventsV1().Events(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=Pulled"}); err != nil || len(list.Items) != 1 {
		t.Fatalf("got %+v, error %v", list, err)
	}
	wantEqual(t, "source", list.Items[0].DeprecatedSource.Component, "old")
	wantContains(t, borough.Kubectl(t, "describe", "pod", "web", "-n", ns), "Pulled", "by the old recorder", "Failed", "by the new recorder")
	wantContains(t, borough.Kubectl(t, "get", "events", "-n", ns), "LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE", "Warning", "pod/web")
	wantContains(t, borough.Kubectl(t, "events", "--for=pod/web", "-n", ns), "Pulled", "Failed")

	// In events.k8s.io more is required.
	_, err = client.EventsV1().Events(ns).Create(t.Context(), &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e"}}, metav1.CreateOptions{})
	wantContains(t, fmt.Sprint(err), `Event "e" is invalid`, "eventTime: Required value", `type: Invalid value: "": has invalid value: `)

	deletePod(t, borough, ns, "web")
	deleteNamespace(t, borough, ns)
	poll.Eventually(t, gone(t, borough, ns))
}

// TestEventsKeepNoNamespace checks that no Event has a finalizer.
func TestEventsKeepNoNamespace(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	client := coreClient(t, borough, "").CoreV1().Events(ns)
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e", Finalizers: []string{"example.com/keep"}}, InvolvedObject: corev1.ObjectReference{Namespace: ns}}
	_, err := client.Create(t.Context(), event, metav1.CreateOptions{})
	wantContains(t, fmt.Sprint(err), "metadata.finalizers: Forbidden: an event expires, and cannot have finalizers")
	event.Finalizers = nil
	created, err := client.Create(t.Context(), event, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	created.Finalizers = []string{"example.com/keep"}
	if _, err := client.Update(t.Context(), created, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("update: %v", err)
	}
	// The propagation policy would add a finalizer to other objects.
	foreground := metav1.DeletePropagationForeground
	if err := client.Delete(t.Context(), "e", metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Get(t.Context(), "e", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after the delete: %v", err)
	}
	event.InvolvedObject.Namespace = "another"
	_, err = client.Create(t.Context(), event, metav1.CreateOptions{})
	wantContains(t, fmt.Sprint(err), `involvedObject.namespace: Invalid value: "another": does not match event.namespace`)
}

// TestEventsAreLimited writes many Events in one Namespace. Another one is not affected,
// and quotas do not count them.
func TestEventsAreLimited(t *testing.T) {
	t.Parallel()
	ns, other := newNamespace(t, borough), newNamespace(t, borough)
	borough.Kubectl(t, "create", "quota", "q", "-n", ns, "--hard=count/events=1")
	client := coreClient(t, borough, "").CoreV1()
	create := func(ns string) error {
		event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{GenerateName: "e-"}, InvolvedObject: corev1.ObjectReference{Namespace: ns}}
		return client.RESTClient().Post().Namespace(ns).Resource("events").Body(event).MaxRetries(0).Do(t.Context()).Error()
	}
	// Concurrently, because the limit also grows with time.
	var created atomic.Int32
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for {
				err := create(ns)
				if apierrors.IsTooManyRequests(err) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				if n := created.Add(1); n > 5000 {
					t.Errorf("created %d Events, and none was rejected", n)
					return
				}
			}
		})
	}
	clients.Wait()
	if n := created.Load(); n < 500 {
		t.Errorf("the limit was reached after %d Events", n)
	}
	if err := create(other); err != nil {
		t.Errorf("in another Namespace: %v", err)
	}
	// Updates count, too.
	events, err := client.Events(ns).List(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	var updated atomic.Int32
	var rejected atomic.Bool
	for range 8 {
		clients.Go(func() {
			for !rejected.Load() {
				n := updated.Add(1)
				body := fmt.Appendf(nil, `{"count":%d}`, n+1)
				err := client.RESTClient().Patch(types.MergePatchType).Namespace(ns).Resource("events").Name(events.Items[0].Name).Body(body).MaxRetries(0).Do(t.Context()).Error()
				switch {
				case apierrors.IsTooManyRequests(err):
					rejected.Store(true)
				case err != nil && !apierrors.IsConflict(err), n > 5000:
					t.Errorf("update %d: error %v", n, err)
					return
				}
			}
		})
	}
	clients.Wait()
}

// TestLeaderElection elects a leader, and another one when the first has gone.
func TestLeaderElection(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	client := coreClient(t, borough, "")
	run := func(identity string) (leading chan struct{}, stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		leading, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
				Lock: &resourcelock.LeaseLock{
					LeaseMeta: metav1.ObjectMeta{Name: "l", Namespace: ns}, Client: client.CoordinationV1(),
					LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
				},
				ReleaseOnCancel: true, LeaseDuration: 2 * time.Minute, RenewDeadline: 100 * time.Second, RetryPeriod: 100 * time.Millisecond,
				Callbacks: leaderelection.LeaderCallbacks{
					OnStartedLeading: func(context.Context) { close(leading) },
					OnStoppedLeading: func() {},
				},
			})
		}()
		return leading, func() { cancel(); <-done }
	}
	for _, identity := range []string{"first", "second"} {
		leading, stop := run(identity)
		select {
		case <-leading:
		case <-time.After(time.Minute):
			t.Errorf("%s does not lead", identity)
		}
		wantContains(t, borough.Kubectl(t, "get", "leases", "-n", ns), "NAME", "HOLDER", "AGE", identity)
		stop()
	}
	lease, err := client.CoordinationV1().Leases(ns).Get(t.Context(), "l", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lease.ResourceVersion = ""
	if _, err := client.CoordinationV1().Leases(ns).Update(t.Context(), lease, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("an update without a resourceVersion: %v", err)
	}
	lease.Name, lease.Spec.LeaseDurationSeconds = "m", new(int32(0))
	_, err = client.CoordinationV1().Leases(ns).Create(t.Context(), lease, metav1.CreateOptions{})
	wantContains(t, fmt.Sprint(err), "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0")
}
