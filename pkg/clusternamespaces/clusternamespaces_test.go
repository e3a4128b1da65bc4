// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package clusternamespaces

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	clienttesting "k8s.io/client-go/testing"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/apis/tenancy/install"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned/fake"
)

func TestSelectNothing(t *testing.T) {
	selector, err := labels.Parse(selectNothing)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []labels.Set{nil, {"a": "b"}, {"tenancy.borough.io/none": ""}} {
		if selector.Matches(set) {
			t.Errorf("matches %v", set)
		}
	}
}

func TestClusterNamespaces(t *testing.T) {
	const (
		controller = "system:serviceaccount:kube-system:namespace-controller"
		pods       = "/apis/tenancy.borough.io/v1/namespaces/foo/pods"
		// What Kubernetes 1.36 sends, without and with service accounts.
		asController = "kube-controller-manager/v1.36.3 (linux/amd64) kubernetes/abc/namespace-controller"
		asAccount    = "kube-controller-manager/v1.36.3 (linux/amd64) kubernetes/abc/" + controller
	)
	active := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "foo", UID: "1"}}
	terminating := active.DeepCopy()
	terminating.DeletionTimestamp = new(metav1.Now())
	terminating.Finalizers = []string{"a/b"} // or the fake client would not have it

	for name, tc := range map[string]struct {
		user, method, path string
		agent              string
		ns                 *v1.Namespace
		couple             bool
		getErr, deleteErr  error

		wantNothing, wantAsked bool
		wantCode               int
	}{
		"purge":                     {user: controller, method: "DELETE", path: pods, ns: active, wantNothing: true},
		"list":                      {user: controller, method: "GET", path: pods, ns: active, wantNothing: true},
		"without service accounts":  {user: "system:kube-controller-manager", method: "DELETE", path: pods, ns: active, wantNothing: true},
		"selector is overridden":    {user: controller, method: "DELETE", path: pods + "?labelSelector=a%3Db", ns: active, wantNothing: true},
		"no such namespace":         {user: controller, method: "DELETE", path: pods, wantNothing: true},
		"terminating":               {user: controller, method: "DELETE", path: pods, ns: terminating, wantNothing: true},
		"another user":              {user: "alice", method: "DELETE", path: pods, ns: active},
		"another user lists":        {user: "alice", method: "GET", path: pods, ns: active},
		"garbage collector deletes": {user: "system:kube-controller-manager", method: "DELETE", path: pods + "/p", ns: active},
		"garbage collector lists":   {user: "system:kube-controller-manager", method: "GET", path: "/apis/tenancy.borough.io/v1/pods", ns: active},
		"watch":                     {user: controller, method: "GET", path: pods + "?watch=true", ns: active},
		"namespace itself":          {user: controller, method: "GET", path: "/apis/tenancy.borough.io/v1/namespaces/foo", ns: active},
		"storage is not asked":      {user: controller, method: "DELETE", path: pods, ns: active, getErr: errors.New("no etcd"), wantNothing: true},
		"coupled, storage fails":    {user: controller, method: "DELETE", path: pods, ns: active, couple: true, getErr: errors.New("no etcd"), wantCode: 500},
		"coupled":                   {user: controller, method: "DELETE", path: pods, ns: active, couple: true, wantAsked: true, wantNothing: true},
		"coupled, list":             {user: controller, method: "GET", path: pods, ns: terminating, couple: true},
		"coupled, list of active":   {user: controller, method: "GET", path: pods, ns: active, couple: true, wantNothing: true},
		"coupled, protected":        {user: controller, method: "DELETE", path: pods, ns: active, couple: true, deleteErr: apierrors.NewConflict(tenancy.Resource("namespaces"), "foo", nil), wantAsked: true, wantNothing: true},
		"coupled, user":             {user: "alice", method: "DELETE", path: pods, ns: active, couple: true},
		"coupled, no namespace":     {user: controller, method: "DELETE", path: pods, couple: true, wantNothing: true},
		"coupled, list of none":     {user: controller, method: "GET", path: pods, couple: true, wantNothing: true},
		"coupled, terminating":      {user: controller, method: "DELETE", path: pods, ns: terminating, couple: true, wantNothing: true},

		"unlisted":                         {user: "admin", agent: asController, method: "DELETE", path: pods, ns: active, wantCode: 403},
		"unlisted, with a service account": {user: "admin", agent: asAccount, method: "DELETE", path: pods, ns: active, wantCode: 403},
		"unlisted, coupled":                {user: "admin", agent: asController, method: "DELETE", path: pods, ns: active, couple: true, wantCode: 403},
		"unlisted, terminating":            {user: "admin", agent: asController, method: "DELETE", path: pods, ns: terminating, wantNothing: true},
		"unlisted, no such namespace":      {user: "admin", agent: asController, method: "DELETE", path: pods, wantNothing: true},
		"unlisted, storage fails":          {user: "admin", agent: asController, method: "DELETE", path: pods, ns: active, getErr: errors.New("no etcd"), wantCode: 500},
		"unlisted lists":                   {user: "admin", agent: asController, method: "GET", path: pods, ns: active},
		"unlisted deletes one":             {user: "admin", agent: asController, method: "DELETE", path: pods + "/p", ns: active},
		"listed, by the agent":             {user: controller, agent: asAccount, method: "DELETE", path: pods, ns: active, wantNothing: true},
		"another controller":               {user: "admin", agent: "kube-controller-manager/v1.36.3 (linux/amd64) kubernetes/abc/generic-garbage-collector", method: "DELETE", path: pods, ns: active},
		"another namespace-controller":     {user: "admin", agent: "x/v1/my-namespace-controller", method: "DELETE", path: pods, ns: active},
		"kubectl":                          {user: "admin", agent: "kubectl/v1.36.3 (linux/amd64) kubernetes/abc", method: "DELETE", path: pods, ns: active},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			if tc.ns != nil {
				if err := client.Tracker().Add(tc.ns); err != nil {
					t.Fatal(err)
				}
			}
			asked := false
			client.PrependReactor("delete", "namespaces", func(action clienttesting.Action) (bool, runtime.Object, error) {
				asked = true
				if got := action.(clienttesting.DeleteAction).GetDeleteOptions().Preconditions; got == nil || *got.UID != tc.ns.UID {
					t.Errorf("deleted with preconditions %v", got)
				}
				return true, nil, tc.deleteErr
			})
			client.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
				return tc.getErr != nil, nil, tc.getErr
			})

			var reached *http.Request
			scheme := runtime.NewScheme()
			install.Install(scheme)
			rule := Config{Controllers: DefaultControllers(), Couple: tc.couple}
			handler := rule.WithFilter(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { reached = req }),
				client, serializer.NewCodecFactory(scheme))

			req := httptest.NewRequest(tc.method, tc.path, nil)
			req.Header.Set("User-Agent", tc.agent)
			resolver := &request.RequestInfoFactory{APIPrefixes: sets.NewString("apis"), GrouplessAPIPrefixes: sets.NewString()}
			info, err := resolver.NewRequestInfo(req)
			if err != nil {
				t.Fatal(err)
			}
			ctx := request.WithUser(request.WithRequestInfo(req.Context(), info), &user.DefaultInfo{Name: tc.user})
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, req.WithContext(ctx))

			if tc.wantCode != 0 {
				if reached != nil || recorder.Code != tc.wantCode {
					t.Errorf("got %d, reached the registry: %v", recorder.Code, reached != nil)
				}
				message := recorder.Body.String()
				var status metav1.Status
				if err := json.Unmarshal(recorder.Body.Bytes(), &status); err == nil {
					message = "Failed to delete all resource types, 1 remaining: " + status.Message
				}
				if user, refused := RefusedController(message); refused != (tc.wantCode == http.StatusForbidden) || refused && user != `"admin"` {
					t.Errorf("RefusedController returns %s, %v for %s", user, refused, message)
				}
				return
			}
			if got := reached.URL.Query().Get("resourceVersion"); (got == "0") != tc.wantNothing {
				t.Errorf("resource version %q", got)
			}
			if got := reached.URL.Query()["labelSelector"]; (len(got) == 1 && got[0] == selectNothing) != tc.wantNothing {
				t.Errorf("label selector %q", got)
			}
			if asked != tc.wantAsked {
				t.Errorf("asked to delete the namespace: %v", asked)
			}
		})
	}
}
