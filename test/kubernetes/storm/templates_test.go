// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/kubernetes/replicas"
	"github.com/borough-io/borough/test/poll"
)

const (
	templatesPrefix = prefix + tenancy.GroupName + "/" + templateResource + "/"
	templateName    = "storm"

	templateResource = "namespacetemplates"
	// templateInterval is the time between changes of the template. A create of a Namespace
	// is carried out only if the template does not change while its objects are created.
	templateInterval = time.Second
)

// changeTemplate creates, changes and deletes a template for all Namespaces, through
// both servers, until the round is over.
func (s *storm) changeTemplate(ctx context.Context, over <-chan struct{}, r *rand.Rand) error {
	for n := 0; ; n++ {
		select {
		case <-over:
			return nil
		default:
		}
		// The content has the number of the change in its name.
		body := manifest("NamespaceTemplate", "name", target{name: templateName}, fmt.Sprintf(`"spec": {
			"limitRange": {"metadata": {"name": "template-%d"}, "spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}},
			"resourceQuota": {"metadata": {"name": "template-%[1]d"}, "spec": {"hard": {"pods": "100", "requests.cpu": "1"}}},
			"roleBinding": {"metadata": {"name": "template-%[1]d"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "storm"}}
		}`, n))
		name, request := "apply NamespaceTemplate", func(client rest.Interface) *rest.Request {
			return client.Patch(types.ApplyYAMLPatchType).Resource(templateResource).Name(templateName).
				Param("fieldManager", "storm").Param("force", "true").Body([]byte(body))
		}
		if n%3 == 2 {
			name, request = "DELETE NamespaceTemplate", func(client rest.Interface) *rest.Request {
				return client.Delete().Resource(templateResource).Name(templateName)
			}
		}
		o, _, err := send(ctx, request(s.clients[r.IntN(2)][0]))
		if ctx.Err() != nil {
			return nil // the test has ended
		}
		s.count(name, o)
		if err != nil && !s.toleratesError(err) {
			return fmt.Errorf("%s: %w", name, err)
		}
		_ = poll.Sleep(ctx, templateInterval) // returns early when the test ends
	}
}

// templated is what the history says of the template.
type templated struct {
	// current is the template that exists, or nil.
	current *v1.NamespaceTemplate
	// namespaces are those that the revision of the last event has created, and keys what
	// else it has.
	namespaces []string
	keys       map[string]bool
	// with and without are the numbers of Namespaces that were created with a template
	// and without.
	with, without int
}

// takeTemplate takes an event into account.
func (h *history) takeTemplate(event *clientv3.Event) error {
	switch key := string(event.Kv.Key); {
	case key == templatesPrefix+templateName:
		h.templates.current = nil
		if event.Type == clientv3.EventTypeDelete {
			return nil
		}
		obj, err := replicas.Decode(event.Kv.Value)
		if err != nil {
			return err
		}
		h.templates.current = obj.(*v1.NamespaceTemplate)
	case event.IsCreate() && len(key) > len(namespacesPrefix) && key[:len(namespacesPrefix)] == namespacesPrefix:
		h.templates.namespaces = append(h.templates.namespaces, key[len(namespacesPrefix):])
	case event.IsCreate():
		h.templates.keys[key] = true
	}
	return nil
}

// compareTemplates checks that each Namespace that the last revision has created has the
// content of the template that existed then, and nothing else.
func (h *history) compareTemplates() {
	t := &h.templates
	for _, namespace := range t.namespaces {
		want := map[string]bool{}
		if t.current == nil {
			t.without++
		} else {
			t.with++
			want[prefix+tenancy.GroupName+"/limitranges/"+namespace+"/"+t.current.Spec.LimitRange.Metadata.Name] = true
			want[prefix+tenancy.GroupName+"/resourcequotas/"+namespace+"/"+t.current.Spec.ResourceQuota.Metadata.Name] = true
			want[prefix+roleBindings.Group+"/rolebindings/"+namespace+"/"+t.current.Spec.RoleBinding.Metadata.Name] = true
		}
		for key := range want {
			if !t.keys[key] {
				h.violations = append(h.violations, fmt.Sprintf("%d: Namespace %s was created without %s of its template", h.revision, namespace, key))
			}
		}
		if len(t.keys) > len(want) && namespace != "default" {
			h.violations = append(h.violations, fmt.Sprintf("%d: Namespace %s was created with %v, want %v", h.revision, namespace, t.keys, want))
		}
	}
	t.namespaces = nil
	clear(t.keys)
}

// verifyTemplates fails the test if no Namespace was created with a template, or none
// without.
func (s *storm) verifyTemplates(t *testing.T) {
	t.Helper()
	if found := s.history.templates; found.with == 0 || found.without == 0 {
		t.Errorf("%d Namespaces were created with a template, %d without", found.with, found.without)
	}
}
