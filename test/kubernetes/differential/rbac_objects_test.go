// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/borough-io/borough/test/kubernetes/differential/sides"
)

// TestRBACObjects creates roles and bindings, changes them, and reads them.
func TestRBACObjects(t *testing.T) {
	types := map[string]reflect.Type{
		"roles":               reflect.TypeFor[rbacv1.Role](),
		"rolebindings":        reflect.TypeFor[rbacv1.RoleBinding](),
		"clusterroles":        reflect.TypeFor[rbacv1.ClusterRole](),
		"clusterrolebindings": reflect.TypeFor[rbacv1.ClusterRoleBinding](),
	}
	// No selector is changed, so that no other role is aggregated.
	fields := []string{"/rules", "/roleRef", "/subjects", "/metadata/labels", "/metadata/annotations", "/metadata/finalizers", "/metadata/ownerReferences"}
	check(t, generate(t, func(r *rand.Rand) scenario {
		p, m := policies{r}, newMutator(r)
		resource := pick(r, []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"})
		namespaced, name := true, "x"
		if kinds[resource].cluster {
			namespaced, name = false, "$ns-x"
		}
		body := object{"rules": p.rules(3, namespaced)}
		switch {
		case resource == "clusterroles" && r.IntN(3) == 0:
			body = object{"aggregationRule": object{"clusterRoleSelectors": []any{object{"matchLabels": object{"$ns": "none"}, "matchExpressions": []any{object{"key": "$ns", "operator": "In", "values": []any{"a"}}}}}}}
		case resource == "rolebindings" || resource == "clusterrolebindings":
			body = object{"roleRef": object{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": "r"}, "subjects": p.subjects(namespaced)}
		}
		post := create(resource, name, body)
		changed := clone(post.Body.(object))
		if r.IntN(2) == 0 {
			m.mutate(post.Body, types[resource], fields...)
		}
		s := scenario{Steps: []step{post}}
		for range 1 + r.IntN(2) {
			s.Steps = append(s.Steps, changeOf(m, resource+"/"+name, changed, types[resource], fields...))
		}
		s.Steps = append(s.Steps, step{Do: "GET " + resource + "/" + name}, step{Do: "DELETE " + resource + "/" + name})
		return s
	}))
}

// TestProtobuf writes and reads objects in protobuf.
func TestProtobuf(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := rbacv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Name: "protobuf", Labels: map[string]string{"a": "b"}}
	rules := []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: []string{"a"}}}
	subjects := []rbacv1.Subject{{Kind: "User", Name: "u"}, {Kind: "ServiceAccount", Name: "s", Namespace: "n"}}
	selector := metav1.LabelSelector{MatchLabels: map[string]string{"protobuf": "none"}}
	for path, obj := range map[string]runtime.Object{
		"namespaces/default/roles":        &rbacv1.Role{ObjectMeta: meta, Rules: rules},
		"namespaces/default/rolebindings": &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "r"}, Subjects: subjects},
		"clusterroles":                    &rbacv1.ClusterRole{ObjectMeta: meta, AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{selector}}},
		"clusterrolebindings":             &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "r"}, Subjects: subjects},
	} {
		t.Run(path, func(t *testing.T) {
			var answers [2][]runtime.Object
			for i, sender := range []*sender{both.kube, both.borough} {
				answers[i] = writeProtobuf(t, sender.side, sender.client, scheme, "/apis/"+rbacv1.SchemeGroupVersion.String()+"/"+path, obj)
			}
			if diff := cmp.Diff(answers[0], answers[1]); diff != "" {
				t.Errorf("Kubernetes -, Borough +:\n%s", diff)
			}
		})
	}
}

// writeProtobuf creates an object, reads it, lists it and deletes it. It returns the
// objects in the responses without what differs between servers.
func writeProtobuf(t *testing.T, side *sides.Side, client *http.Client, scheme *runtime.Scheme, path string, obj runtime.Object) (answers []runtime.Object) {
	t.Helper()
	codec := protobuf.NewSerializer(scheme, scheme)
	kinds, _, err := scheme.ObjectKinds(obj)
	if err != nil {
		t.Fatal(err)
	}
	obj = obj.DeepCopyObject()
	obj.GetObjectKind().SetGroupVersionKind(kinds[0])
	var body bytes.Buffer
	if err := codec.Encode(obj, &body); err != nil {
		t.Fatal(err)
	}
	for _, request := range []struct {
		method, path string
		body         []byte
		code         int
	}{
		{http.MethodPost, path, body.Bytes(), http.StatusCreated},
		{http.MethodGet, path + "/protobuf", nil, http.StatusOK},
		{http.MethodGet, path + "?labelSelector=a%3Db&fieldSelector=metadata.name%3Dprotobuf", nil, http.StatusOK},
		{http.MethodDelete, path + "/protobuf", nil, http.StatusOK},
	} {
		data := sendProtobuf(t.Context(), t, client, request.method, side.Config.Host+request.path, request.body, request.code)
		if request.method == http.MethodDelete {
			continue
		}
		answer, _, err := codec.Decode(data, nil, nil)
		if err != nil {
			t.Fatalf("%s: %s: decode the response: %v", side.Name, request.path, err)
		}
		answers = append(answers, withoutServer(t, answer))
	}
	return answers
}

func sendProtobuf(ctx context.Context, t *testing.T, client *http.Client, method, url string, body []byte, code int) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", runtime.ContentTypeProtobuf)
	request.Header.Set("Accept", runtime.ContentTypeProtobuf)
	request.Header.Set("User-Agent", "differential")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != code {
		t.Fatalf("%s %s: got %d: %s", method, url, response.StatusCode, data)
	}
	return data
}

// withoutServer removes what a server sets from an object or the objects of a list: the
// UID, the resourceVersion and the time.
func withoutServer(t *testing.T, obj runtime.Object) runtime.Object {
	t.Helper()
	remove := func(obj runtime.Object) error {
		m, err := meta.Accessor(obj)
		if err != nil {
			return err
		}
		m.SetUID("")
		m.SetResourceVersion("")
		m.SetCreationTimestamp(metav1.Time{})
		for i := range m.GetManagedFields() {
			m.GetManagedFields()[i].Time = nil
		}
		return nil
	}
	each := func(obj runtime.Object, f func(runtime.Object) error) error { return f(obj) }
	if list, err := meta.ListAccessor(obj); err == nil {
		list.SetResourceVersion("")
		each = meta.EachListItem
	}
	if err := each(obj, remove); err != nil {
		t.Fatal(err)
	}
	return obj
}
