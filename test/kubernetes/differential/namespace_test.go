// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"math/rand/v2"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

var namespaceType = reflect.TypeFor[corev1.Namespace]()

// TestNamespaces creates Namespaces and changes them, their status and their
// finalizers.
func TestNamespaces(t *testing.T) {
	checkGroups(t, few, generate(t, func(r *rand.Rand) scenario {
		m := newMutator(r)
		namespace := randomNamespace(r)
		stored := clone(namespace)
		if r.IntN(2) == 0 {
			m.mutate(namespace, namespaceType, "/metadata", "/spec", "/status")
		}
		s := scenario{Steps: []step{{Do: "POST namespaces" + pick(r, []string{"", "", "", "?fieldManager=a", "?dryRun=All"}), Body: namespace}}}
		for range 1 + r.IntN(3) {
			path, pointers := "namespaces/$ns", []string{"/metadata", "/spec"}
			switch r.IntN(5) {
			case 0:
				path, pointers = path+"/status", []string{"/status", "/metadata/labels"}
			case 1:
				path, pointers = path+"/finalize", []string{"/spec", "/metadata/finalizers"}
			case 2:
				s.Steps = append(s.Steps, step{Do: "DELETE " + path}, step{Do: "GET " + path})
			}
			change := changeOf(m, path, stored, namespaceType, pointers...)
			s.Steps = append(s.Steps, change, step{Do: "GET namespaces/$ns"})
		}
		return s
	}))
}

func randomNamespace(r *rand.Rand) object {
	metadata := object{"name": "$ns"}
	if r.IntN(4) == 0 {
		metadata["labels"] = object{pick(r, []string{"a", "kubernetes.io/metadata.name", "example.com/x"}): pick(r, []string{"", "b", "x y"})}
	}
	if r.IntN(4) == 0 {
		metadata["finalizers"] = []any{pick(r, []string{"example.com/f", "orphan", "foregroundDeletion", "kubernetes", "x"})}
	}
	namespace := object{"metadata": metadata, "spec": object{}, "status": object{}}
	if r.IntN(3) == 0 {
		namespace["spec"] = object{"finalizers": pick(r, []any{[]any{}, []any{"kubernetes"}, []any{"example.com/f"}, []any{"x"}, []any{"kubernetes", "example.com/f"}, []any{"a b", ""}})}
	}
	if r.IntN(3) == 0 {
		namespace["status"] = object{"phase": pick(r, []string{"Active", "Terminating", "Gone", ""})}
	}
	return namespace
}
