// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterplugins

import (
	"context"
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	namespacematcher "k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/namespace"
	kubeinformers "k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	boroughadmission "github.com/borough-io/borough/pkg/admission"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned/fake"
	"github.com/borough-io/borough/pkg/generated/informers/externalversions"
)

// webhook is a webhook with a namespaceSelector.
type webhook struct{ labels.Selector }

func (w webhook) GetParsedNamespaceSelector() (labels.Selector, error) { return w.Selector, nil }

// TestNamespaceSelector matches a request for a Pod with the library's matcher, which
// reads our Namespaces. If the Namespace is stored but cannot be read, a webhook
// that selects Namespaces fails the request, so that it cannot be bypassed. The labels of
// a new Namespace are those of no other of its name, whether that exists or the informer
// still has it.
func TestNamespaceSelector(t *testing.T) {
	readable := func() (runtime.Object, error) {
		return &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", UID: "stored", Labels: map[string]string{"a": "b"}}}, nil
	}
	unreadable := func() (runtime.Object, error) {
		return nil, apierrors.NewInternalError(errors.New("data on the disk cannot be decoded"))
	}
	absent := func() (runtime.Object, error) { return nil, apierrors.NewNotFound(v1.Resource("namespaces"), "ns") }
	for name, tc := range map[string]struct {
		get      func() (runtime.Object, error)
		cached   types.UID         // of a Namespace with a=b in the informer
		created  map[string]string // the labels of the Namespace that is created with the Pod
		uid      types.UID         // of that
		selector string
		want     bool
		code     int32
		refusal  error
		retried  bool // whether the request for the new Namespace fails and is to be retried
	}{
		"selected":                  {get: readable, selector: "a=b", want: true},
		"not selected":              {get: readable, selector: "a=c"},
		"absent":                    {get: absent, selector: "a=b", code: http.StatusNotFound},
		"new, selected":             {get: absent, created: map[string]string{"a": "b"}, selector: "a=b", want: true},
		"new, not selected":         {get: absent, created: map[string]string{"a": "c"}, selector: "a=b"},
		"exists, not new":           {get: readable, created: map[string]string{"a": "c"}, uid: "new", selector: "a=b", want: true, retried: true},
		"refused, not new":          {get: readable, created: map[string]string{"a": "c"}, uid: "new", selector: "a=b", want: true, refusal: errors.New("no"), retried: true},
		"was created by a retry":    {get: readable, created: map[string]string{"a": "b"}, uid: "stored", selector: "a=b", want: true},
		"cached":                    {get: absent, cached: "old", selector: "a=b", want: true},
		"new, another is cached":    {get: absent, cached: "old", created: map[string]string{"a": "c"}, uid: "new", selector: "a=b"},
		"cached, not new":           {get: readable, cached: "stored", created: map[string]string{"a": "c"}, uid: "new", selector: "a=b", want: true, retried: true},
		"unreadable":                {get: unreadable, selector: "a=b", code: http.StatusInternalServerError},
		"unreadable, all selected":  {get: unreadable, want: true},
		"unreadable, none selected": {get: unreadable, selector: "a=b,a=c", code: http.StatusInternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			client.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
				ns, err := tc.get()
				return true, ns, err
			})
			request := admission.NewAttributesRecord(&v1.Pod{}, nil, v1.SchemeGroupVersion.WithKind("Pod"), "ns", "p",
				v1.SchemeGroupVersion.WithResource("pods"), "", admission.Update, nil, false, nil)
			pendingNamespaces := NewPendingNamespaces()
			ctx := t.Context()
			if tc.created != nil {
				ctx = boroughadmission.WithPendingNamespace(ctx, &metav1.ObjectMeta{Name: "ns", UID: tc.uid, Labels: tc.created})
			}
			informers := externalversions.NewSharedInformerFactory(client, 0)
			if tc.cached != "" {
				cached := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", UID: tc.cached, Labels: map[string]string{"a": "b"}}}
				if err := informers.Tenancy().V1().Namespaces().Informer().GetStore().Add(cached); err != nil {
					t.Fatal(err)
				}
			}
			cluster := kubefake.NewClientset()
			kube, kubeFactory := WithNamespaces(cluster, kubeinformers.NewSharedInformerFactory(cluster, 0), client, informers.Tenancy().V1().Namespaces(), pendingNamespaces)
			matcher := namespacematcher.Matcher{NamespaceLister: kubeFactory.Core().V1().Namespaces().Lister(), Client: kube}

			selector, err := labels.Parse(tc.selector)
			if err != nil {
				t.Fatal(err)
			}
			err = pendingNamespaces.while(ctx, request, func() error {
				got, status := matcher.MatchNamespaceSelector(webhook{selector}, request)
				var code int32
				if status != nil {
					code = status.ErrStatus.Code
				}
				if got != tc.want || code != tc.code {
					t.Errorf("got %v, %v, want %v with code %d", got, status, tc.want, tc.code)
				}
				return tc.refusal
			})
			if apierrors.IsServerTimeout(err) != tc.retried || err != nil && !tc.retried {
				t.Errorf("got %v, want that it is to be retried: %t", err, tc.retried)
			}
		})
	}
}

// TestInformerIsStarted checks that the informer is started with its factory, although
// plugins ask for it only when they get their first request.
func TestInformerIsStarted(t *testing.T) {
	informers, cluster := externalversions.NewSharedInformerFactory(fake.NewClientset(), 0), kubefake.NewClientset()
	_, kubeFactory := WithNamespaces(cluster, kubeinformers.NewSharedInformerFactory(cluster, 0), fake.NewClientset(), informers.Tenancy().V1().Namespaces(), NewPendingNamespaces())
	namespaces := kubeFactory.Core().V1().Namespaces()
	informers.StartWithContext(t.Context())
	t.Cleanup(informers.Shutdown)
	informers.WaitForCacheSyncWithContext(t.Context())
	if !namespaces.Informer().HasSynced() {
		t.Error("the informer of Namespaces has not synced")
	}
}

// TestPendingNamespaces adds two Namespaces of one name. The second waits for the first.
func TestPendingNamespaces(t *testing.T) {
	pendingNamespaces := NewPendingNamespaces()
	add := func(ctx context.Context, label string) (*pendingNamespace, error) {
		return pendingNamespaces.add(boroughadmission.WithPendingNamespace(ctx, &metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"a": label}}))
	}
	first, err := add(t.Context(), "first")
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := add(ended, "ended"); !errors.Is(err, context.Canceled) {
		t.Errorf("a request that has ended: %v", err)
	}
	added := make(chan *pendingNamespace)
	go func() {
		second, err := add(t.Context(), "second")
		if err != nil {
			t.Error(err)
		}
		added <- second
	}()
	if got := pendingNamespaces.get("ns").Labels["a"]; got != "first" {
		t.Errorf("got %s", got)
	}
	pendingNamespaces.remove(first)
	second := <-added
	if got := pendingNamespaces.get("ns").Labels["a"]; got != "second" {
		t.Errorf("got %s", got)
	}
	pendingNamespaces.remove(second)
	if got := pendingNamespaces.get("ns"); got != nil {
		t.Errorf("got %v", got)
	}
}
