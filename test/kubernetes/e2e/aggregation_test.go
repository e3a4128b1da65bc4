// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/test/harness"
)

// TestWatchList watches with sendInitialEvents: it gets the existing objects,
// the bookmark that ends the list, and then new events. It requests our types
// in both encodings and PartialObjectMetadata, as the cluster's garbage
// collector does.
func TestWatchList(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	namespace := newNamespace(t)
	for i := range 3 {
		newPod(t, namespace, fmt.Sprintf("pod-%d", i))
	}
	inProtobuf := cluster.AdminConfig()
	inProtobuf.ContentType = runtime.ContentTypeProtobuf
	typed, err := versioned.NewForConfig(inProtobuf)
	if err != nil {
		t.Fatal(err)
	}
	meta, err := metadata.NewForConfig(cluster.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	resource := v1.SchemeGroupVersion.WithResource("pods")
	options := metav1.ListOptions{
		SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
	}
	watchers := map[string]watch.Interface{}
	for name, start := range map[string]func() (watch.Interface, error){
		"JSON": func() (watch.Interface, error) {
			return cluster.BoroughClient(t).TenancyV1().Pods(namespace).Watch(ctx, options)
		},
		"protobuf": func() (watch.Interface, error) { return typed.TenancyV1().Pods(namespace).Watch(ctx, options) },
		"metadata": func() (watch.Interface, error) {
			return meta.Resource(resource).Namespace(namespace).Watch(ctx, options)
		},
		"metadata of every object": func() (watch.Interface, error) { return meta.Resource(resource).Watch(ctx, options) },
	} {
		watcher, err := start()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		defer watcher.Stop()
		watchers[name] = watcher
	}
	// next returns the next event of the Namespace, or a bookmark.
	next := func(name string) (watch.EventType, metav1.Object) {
		t.Helper()
		for {
			select {
			case event, ok := <-watchers[name].ResultChan():
				object, isObject := event.Object.(metav1.Object)
				if !ok || !isObject {
					t.Fatalf("%s: the watch has %+v", name, event)
				}
				if _, isMetadata := object.(*metav1.PartialObjectMetadata); isMetadata != strings.HasPrefix(name, "metadata") {
					t.Fatalf("%s: the watch has a %T", name, object)
				}
				if event.Type == watch.Bookmark || object.GetNamespace() == namespace {
					return event.Type, object
				}
			case <-time.After(time.Minute):
				t.Fatalf("%s: nothing comes", name)
			}
		}
	}
	for name := range watchers {
		for i := range 3 {
			if event, object := next(name); event != watch.Added || object.GetName() != fmt.Sprintf("pod-%d", i) {
				t.Fatalf("%s: got %s %s, want pod-%d added", name, event, object.GetName(), i)
			}
		}
		if event, object := next(name); event != watch.Bookmark || object.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" || object.GetResourceVersion() == "" {
			t.Fatalf("%s: got %s %+v, want the bookmark that ends the list", name, event, object)
		}
	}
	newPod(t, namespace, "later")
	for name := range watchers {
		event, object := next(name)
		for event == watch.Bookmark {
			event, object = next(name)
		}
		if event != watch.Added || object.GetName() != "later" {
			t.Errorf("%s: got %s %s, want the later event", name, event, object.GetName())
		}
	}
}

// TestMetadata sends the requests of the cluster's garbage collector and
// namespace controller: PartialObjectMetadata in protobuf.
func TestMetadata(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	namespace := newNamespace(t)
	first := newPod(t, namespace, "first", func(pod *v1.Pod) { pod.Finalizers = []string{"example.com/hold"} })
	newPod(t, namespace, "second")
	encodings := map[string]bool{}
	config := cluster.AdminConfig()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err == nil && response.StatusCode == http.StatusOK {
				encodings[response.Header.Get("Content-Type")] = true
			}
			return response, err
		})
	})
	client, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	objects := client.Resource(v1.SchemeGroupVersion.WithResource("pods")).Namespace(namespace)
	got, err := objects.Get(ctx, "first", metav1.GetOptions{})
	if err != nil || got.UID != first.UID {
		t.Fatalf("get: %+v, error %v", got, err)
	}
	list, err := objects.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil || len(list.Items) != 1 || list.Continue == "" {
		t.Fatalf("list: %+v, error %v", list, err)
	}
	if list, err = objects.List(ctx, metav1.ListOptions{Limit: 1, Continue: list.Continue}); err != nil || len(list.Items) != 1 || list.Items[0].Name != "second" {
		t.Errorf("list the next chunk: %+v, error %v", list, err)
	}
	for _, kind := range []types.PatchType{types.StrategicMergePatchType, types.MergePatchType} {
		patch := fmt.Sprintf(`{"metadata":{"uid":%q,"labels":{"patched":"yes"}}}`, first.UID)
		if got, err = objects.Patch(ctx, "first", kind, []byte(patch), metav1.PatchOptions{}); err != nil || got.Labels["patched"] != "yes" {
			t.Errorf("%s: %+v, error %v", kind, got, err)
		}
	}
	if err := objects.Delete(ctx, "first", metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("another")}); !apierrors.IsConflict(err) {
		t.Errorf("delete with another UID: got error %v", err)
	}
	if err := objects.DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}, metav1.ListOptions{}); err != nil {
		t.Errorf("delete all: %v", err)
	}
	if list, err = objects.List(ctx, metav1.ListOptions{}); err != nil || len(list.Items) != 1 || list.Items[0].DeletionTimestamp == nil {
		t.Errorf("list after the delete: %+v, error %v", list, err)
	}
	for encoding := range encodings {
		if !strings.HasPrefix(encoding, runtime.ContentTypeProtobuf) {
			t.Errorf("a response is encoded as %s", encoding)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// TestNoRedirects requests all paths that the aggregator forwards to our
// server, also with an additional or missing slash. The aggregator does not
// follow redirects.
func TestNoRedirects(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	newPod(t, namespace, "web")
	const group = "/apis/tenancy.borough.io"
	ours := group + "/v1/namespaces/" + namespace
	config := cluster.AdminConfig()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err == nil && response.StatusCode >= 300 && response.StatusCode < 400 {
				t.Errorf("%s is redirected to %q", request.URL.Path, response.Header.Get("Location"))
			}
			return response, err
		})
	})
	for _, client := range []harness.HTTP{newDirect(t, config), harness.NewHTTP(t, config)} {
		for _, path := range []string{
			"/apis", group, group + "/v1", group + "/v1/namespaces", ours, ours + "/status", ours + "/pods", ours + "/pods/web", ours + "/pods/web/status",
			group + "/v1/pods", group + "/v1/watch/namespaces/" + namespace + "/pods/web?timeoutSeconds=1",
			"/openapi/v2", "/openapi/v3", "/openapi/v3" + group + "/v1", "/version", "/readyz",
		} {
			if answer := client.Do(t, http.MethodGet, path, nil); answer.Code != http.StatusOK {
				t.Errorf("%s: got %v", path, answer)
			}
			if path, _, found := strings.Cut(path, "?"); !found {
				client.Do(t, http.MethodGet, path+"/", nil)
			}
		}
	}
}
