// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/harness"
)

// eventTimeout is how long next waits for an event.
const eventTimeout = time.Minute

// next waits for the next event of a watch and returns it.
func next(t *testing.T, events <-chan watch.Event) watch.Event {
	t.Helper()
	select {
	case event, ok := <-events:
		if !ok {
			t.Fatal("the watch ended")
		}
		return event
	case <-time.After(eventTimeout):
		t.Fatal("timed out without an event")
	}
	return watch.Event{}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	pods := borough.Client(t).TenancyV1().Pods(ns)
	list, err := pods.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watcher, err := pods.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion, LabelSelector: "in=yes"})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()

	createPod(t, borough, ns, newPod("other"))
	createPod(t, borough, ns, newPod("p", func(p *v1.Pod) { p.Labels = map[string]string{"in": "yes"} }))
	relabel := func(patch string) {
		t.Helper()
		if _, err := pods.Patch(t.Context(), "p", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	relabel(`{"metadata":{"labels":{"more":"yes"}}}`)
	relabel(`{"metadata":{"labels":{"in":"no"}}}`) // no longer selected
	relabel(`{"metadata":{"labels":{"in":"yes"}}}`)
	if err := pods.Delete(t.Context(), "p", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []watch.EventType{
		watch.Added, watch.Modified, watch.Deleted, watch.Added,
		watch.Modified, watch.Deleted, // marked for deletion, then removed
	} {
		event := next(t, watcher.ResultChan())
		pod, ok := event.Object.(*v1.Pod)
		if event.Type != want || !ok || pod.Name != "p" {
			t.Fatalf("event %d: got %s of %+v, want %s of p", i, event.Type, event.Object, want)
		}
	}
}

// streamed is an event as it is encoded in a watch.
type streamed struct {
	Type   watch.EventType
	Object json.RawMessage
}

func (s streamed) meta(t *testing.T) metav1.PartialObjectMetadata {
	t.Helper()
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(s.Object, &object); err != nil {
		t.Fatalf("decode the object of an event: %v", err)
	}
	return object
}

// stream opens a watch. It returns a function that waits for the next event.
func stream(t *testing.T, b *harness.Borough, path string, query url.Values) func() streamed {
	t.Helper()
	return streamAs(t, b.HTTP(t), path, query)
}

func streamAs(t *testing.T, client harness.HTTP, path string, query url.Values) func() streamed {
	t.Helper()
	response := client.Open(t, "GET", path+"?"+query.Encode(), nil, "Accept", asJSON)
	t.Cleanup(func() { response.Body.Close() })
	if response.StatusCode != 200 {
		body, _ := io.ReadAll(response.Body)
		t.Fatalf("watch %s: %s: %s", path, response.Status, body)
	}
	decoder := json.NewDecoder(response.Body)
	return func() streamed {
		t.Helper()
		var event streamed
		if err := decoder.Decode(&event); err != nil {
			t.Fatalf("watch %s: next event: %v", path, err)
		}
		return event
	}
}

// TestWatchList checks streaming lists: first an event for each existing object,
// then a bookmark that ends the list, then changes.
func TestWatchList(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	for i := range 3 {
		createPod(t, borough, ns, newPod(fmt.Sprintf("p%d", i)))
	}
	event := stream(t, borough, api+"/namespaces/"+ns+"/pods", url.Values{
		"watch": {"1"}, "sendInitialEvents": {"true"}, "allowWatchBookmarks": {"true"}, "resourceVersionMatch": {"NotOlderThan"},
	})
	for i := range 3 {
		got := event()
		if got.Type != watch.Added || got.meta(t).Name != fmt.Sprintf("p%d", i) {
			t.Fatalf("got %s %s, want Pod %d", got.Type, got.Object, i)
		}
	}
	bookmark := event()
	if bookmark.Type != watch.Bookmark || bookmark.meta(t).Annotations[metav1.InitialEventsAnnotationKey] != "true" || bookmark.meta(t).ResourceVersion == "" {
		t.Fatalf("got %s %s, want the bookmark that ends the list", bookmark.Type, bookmark.Object)
	}
	createPod(t, borough, ns, newPod("later"))
	got := event()
	for got.Type == watch.Bookmark { // can be sent at any time
		got = event()
	}
	if got.Type != watch.Added || got.meta(t).Name != "later" {
		t.Errorf("got %s %s, want the Pod that was created later", got.Type, got.Object)
	}
}

// TestWatchBookmarks checks that a watch with bookmarks gets one although no
// selected object changes, at the latest before the server ends the watch.
func TestWatchBookmarks(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	query := url.Values{"watch": {"1"}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {"3"}}
	var got streamed
	// It is sent at least two seconds before the end. A server that is held up sends none.
	for range 10 {
		response := borough.HTTP(t).Open(t, "GET", api+"/namespaces/"+ns+"/limitranges?"+query.Encode(), nil)
		if response.StatusCode != 200 {
			t.Fatalf("got %s, want a watch", response.Status)
		}
		err := json.NewDecoder(response.Body).Decode(&got)
		response.Body.Close()
		if err == nil {
			break
		}
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	if got.Type != watch.Bookmark || got.meta(t).ResourceVersion == "" {
		t.Errorf("got %s %s, want a bookmark", got.Type, got.Object)
	}
}

// TestDeprecatedWatchPaths checks the paths /watch/..., which core/v1 still has.
func TestDeprecatedWatchPaths(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	createPod(t, borough, ns, newPod("p"))
	createPod(t, borough, ns, newPod("q"))
	for path, want := range map[string]string{
		"/watch/namespaces/" + ns:                                                  ns,
		"/watch/namespaces/" + ns + "/pods":                                        "p",
		"/watch/namespaces/" + ns + "/pods/q":                                      "q",
		"/watch/pods?fieldSelector=metadata.name%3Dq%2Cmetadata.namespace%3D" + ns: "q",
		"/watch/namespaces?fieldSelector=metadata.name%3D" + ns:                    ns,
	} {
		t.Run(path, func(t *testing.T) {
			response := borough.HTTP(t).Open(t, "GET", api+path, nil)
			defer response.Body.Close()
			if response.StatusCode != 200 {
				t.Fatalf("got %s, want a watch", response.Status)
			}
			var event streamed
			if err := json.NewDecoder(response.Body).Decode(&event); err != nil {
				t.Fatal(err)
			}
			if event.Type != watch.Added || event.meta(t).Name != want {
				t.Errorf("got %s %s, want %s", event.Type, event.Object, want)
			}
		})
	}
}

// TestDeprecatedWatchOfNamespace checks that the deprecated path of a Namespace has its changes,
// in both groups.
func TestDeprecatedWatchOfNamespace(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{api, "/api/v1"} {
		ns := newNamespace(t, borough)
		response := borough.HTTP(t).Open(t, "GET", prefix+"/watch/namespaces/"+ns, nil)
		defer response.Body.Close()
		defer time.AfterFunc(3*time.Minute, func() { _ = response.Body.Close() }).Stop()
		events := json.NewDecoder(response.Body)
		for _, want := range []watch.EventType{watch.Added, watch.Modified} {
			var event streamed
			if err := events.Decode(&event); err != nil {
				t.Fatalf("%s: %v", prefix, err)
			}
			if event.Type != want || event.meta(t).Name != ns {
				t.Fatalf("%s: got %s %s, want %s", prefix, event.Type, event.Object, want)
			}
			if _, err := borough.Client(t).TenancyV1().Namespaces().Patch(t.Context(), ns, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestWatchOneNamespace checks that a watch of one Namespace gets its changes
// only.
func TestWatchOneNamespace(t *testing.T) {
	t.Parallel()
	ns, other := newNamespace(t, borough), newNamespace(t, borough)
	namespaces := borough.Client(t).TenancyV1().Namespaces()
	watcher, err := namespaces.Watch(t.Context(), metav1.SingleObject(metav1.ObjectMeta{Name: ns}))
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	if event := next(t, watcher.ResultChan()); event.Type != watch.Added {
		t.Fatalf("got %s, want ADDED", event.Type)
	}
	for _, name := range []string{other, ns} {
		if _, err := namespaces.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	event := next(t, watcher.ResultChan())
	if got := event.Object.(*v1.Namespace); event.Type != watch.Modified || got.Name != ns {
		t.Errorf("got %s of %s, want the change of %s", event.Type, got.Name, ns)
	}
}

func TestChunkedList(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	const total, limit = 25, 10
	for i := range total {
		createPod(t, borough, ns, newPod(fmt.Sprintf("p%02d", i)))
	}
	pods := borough.Client(t).TenancyV1().Pods(ns)
	var names []string
	options := metav1.ListOptions{Limit: limit}
	for {
		list, err := pods.List(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		for _, pod := range list.Items {
			names = append(names, pod.Name)
		}
		if list.Continue == "" {
			break
		}
		if left := total - len(names); list.RemainingItemCount == nil || *list.RemainingItemCount != int64(left) {
			t.Errorf("after %d Pods: got %v remaining, want %d", len(names), list.RemainingItemCount, left)
		}
		// All chunks are from the same revision, so a Pod that is created
		// between two of them is missing.
		createPod(t, borough, ns, newPod("z"+strconv.Itoa(len(names))))
		options.Continue = list.Continue
	}
	if len(names) != total {
		t.Errorf("got %d Pods in chunks, want %d: %v", len(names), total, names)
	}
	options.Continue = "nonsense"
	_, err := pods.List(t.Context(), options)
	wantCode(t, err, 400)
}

// TestUnknownResourceVersion checks the errors for a resourceVersion that is
// malformed or in the future.
func TestUnknownResourceVersion(t *testing.T) {
	t.Parallel()
	http := borough.HTTP(t)
	wantStatus(t, http.Do(t, "GET", api+"/pods?resourceVersion=x", nil), 400, "invalid resource version")
	wantStatus(t, http.Do(t, "GET", api+"/pods?resourceVersion=999999999", nil), 504, "Too large resource version")
}

// TestWatchByNode checks that a watch with a field selector for a node gets only
// the Pods of that node.
func TestWatchByNode(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	pods := borough.Client(t).TenancyV1().Pods(ns)
	watcher, err := pods.Watch(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=n"})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	createPod(t, borough, ns, newPod("elsewhere", func(p *v1.Pod) { p.Spec.NodeName = "other" }))
	createPod(t, borough, ns, newPod("here"))
	if _, err := pods.Bind(t.Context(), "here", &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: "here"}, Target: corev1.ObjectReference{Kind: "Node", Name: "n"},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	event := next(t, watcher.ResultChan())
	if pod := event.Object.(*v1.Pod); event.Type != watch.Added || pod.Name != "here" {
		t.Errorf("got %s of %s, want the Pod when it is bound to the node", event.Type, pod.Name)
	}
}
