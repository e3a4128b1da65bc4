// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterplugins

import (
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	namespacematcher "k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/namespace"
	kubeinformers "k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned/fake"
	"github.com/borough-io/borough/pkg/generated/informers/externalversions"
)

// webhook is a webhook with a namespaceSelector.
type webhook struct{ labels.Selector }

func (w webhook) GetParsedNamespaceSelector() (labels.Selector, error) { return w.Selector, nil }

// TestNamespaceSelector matches a request for a Pod with the library's matcher, which
// reads our Namespaces. If the Namespace is stored but cannot be read, a webhook
// that selects Namespaces fails the request, so that it cannot be bypassed.
func TestNamespaceSelector(t *testing.T) {
	readable := func() (runtime.Object, error) {
		return &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"a": "b"}}}, nil
	}
	unreadable := func() (runtime.Object, error) {
		return nil, apierrors.NewInternalError(errors.New("data on the disk cannot be decoded"))
	}
	absent := func() (runtime.Object, error) { return nil, apierrors.NewNotFound(v1.Resource("namespaces"), "ns") }
	for name, tc := range map[string]struct {
		get      func() (runtime.Object, error)
		selector string
		want     bool
		code     int32
	}{
		"selected":                  {get: readable, selector: "a=b", want: true},
		"not selected":              {get: readable, selector: "a=c"},
		"absent":                    {get: absent, selector: "a=b", code: http.StatusNotFound},
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
			informers := externalversions.NewSharedInformerFactory(client, 0)
			cluster := kubefake.NewClientset()
			kube, kubeFactory := WithNamespaces(cluster, kubeinformers.NewSharedInformerFactory(cluster, 0), client, informers.Tenancy().V1().Namespaces())
			matcher := namespacematcher.Matcher{NamespaceLister: kubeFactory.Core().V1().Namespaces().Lister(), Client: kube}

			selector, err := labels.Parse(tc.selector)
			if err != nil {
				t.Fatal(err)
			}
			request := admission.NewAttributesRecord(&v1.Pod{}, nil, v1.SchemeGroupVersion.WithKind("Pod"), "ns", "p",
				v1.SchemeGroupVersion.WithResource("pods"), "", admission.Update, nil, false, nil)
			got, status := matcher.MatchNamespaceSelector(webhook{selector}, request)
			var code int32
			if status != nil {
				code = status.ErrStatus.Code
			}
			if got != tc.want || code != tc.code {
				t.Errorf("got %v, %v, want %v with code %d", got, status, tc.want, tc.code)
			}
		})
	}
}
