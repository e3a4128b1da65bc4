// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

type restStorage struct{ namespaced bool }

func (restStorage) New() runtime.Object     { return nil }
func (restStorage) Destroy()                {}
func (s restStorage) NamespaceScoped() bool { return s.namespaced }

// stored is a storage with something in it.
type stored struct{ restStorage }

func (stored) Get(context.Context, string, *metav1.GetOptions) (runtime.Object, error) {
	return nil, nil
}

func TestCheckNamespaced(t *testing.T) {
	for name, tc := range map[string]struct {
		resource string
		storage  rest.Storage
		want     string
	}{
		"namespaced":         {"pods", stored{restStorage{true}}, ""},
		"cluster-scoped":     {"things", stored{restStorage{false}}, ""},
		"clash":              {"status", stored{restStorage{true}}, "subresource of that name"},
		"other clash":        {"finalize", stored{restStorage{true}}, "subresource of that name"},
		"clash without harm": {"status", stored{restStorage{false}}, ""},
		"not fenced":         {"things", stored{restStorage{true}}, "missing in the namespaced kinds"},
		"not stored":         {"things", restStorage{true}, ""},
		"clash, not stored":  {"status", restStorage{true}, "subresource of that name"},
	} {
		t.Run(name, func(t *testing.T) {
			err := (&ExtraConfig{}).checkNamespaced(tenancy.GroupName, map[string]rest.Storage{
				"namespaces":          restStorage{false},
				"namespaces/status":   restStorage{false},
				"namespaces/finalize": restStorage{false},
				tc.resource:           tc.storage,
			})
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
