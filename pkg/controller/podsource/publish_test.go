// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package podsource

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/requestlimits"
	"github.com/borough-io/borough/pkg/source"
)

// TestManySources shows problems of more sources in a Namespace than can apply an object, and
// removes them.
func TestManySources(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	namespace := f.server.Namespace(t)
	get := func() *v1.Namespace {
		t.Helper()
		got, err := f.admin.TenancyV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
		f.must(err)
		return got
	}
	annotate := func(s *session, problems []source.Problem) {
		t.Helper()
		_, err := s.annotate(t.Context(), problems)
		f.must(err)
	}
	before := get()
	var sessions []*session
	for i := range requestlimits.MaxAppliers + 1 {
		identity := f.identity
		identity.Node = fmt.Sprintf("node-%d", i)
		c, err := New(f.server.Config(), Config{Source: identity, Namespace: namespace}, f.metrics)
		f.must(err)
		s, err := c.newSession(before.UID, func(error) {})
		f.must(err)
		t.Cleanup(s.queue.ShutDown)
		sessions = append(sessions, s)
		annotate(s, []source.Problem{{Message: "m"}})
	}
	if got := get(); len(got.Annotations) != len(sessions) || len(got.ManagedFields) != len(before.ManagedFields)+1 {
		t.Errorf("%d annotations, the managers %v", len(got.Annotations), got.ManagedFields)
	}
	for _, s := range sessions {
		annotate(s, nil)
	}
	without := get()
	if len(without.Annotations) != 0 || len(without.ManagedFields) != len(before.ManagedFields) {
		t.Errorf("the annotations %v, the managers %v", without.Annotations, without.ManagedFields)
	}
	annotate(sessions[0], nil)
	if got := get(); got.ResourceVersion != without.ResourceVersion {
		t.Error("without an annotation, a source without problems writes the Namespace")
	}
	other := sessions[0]
	other.uid = "00000000-0000-0000-0000-000000000000"
	if _, err := other.annotate(t.Context(), []source.Problem{{Message: "m"}}); err == nil || len(get().Annotations) != 0 {
		t.Errorf("a source of another Namespace with this name gets %v", err)
	}
}

// TestEventsWait holds up the Events of the problems. The annotation does not wait for them, also
// when another client removes it at that time.
func TestEventsWait(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.wrap = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if strings.HasSuffix(req.URL.Path, "/events") {
				<-req.Context().Done()
				return nil, req.Context().Err()
			}
			return next.RoundTrip(req)
		})
	}
	f.writeText("a.yaml", "kind: Other")
	f.start(f.config())
	f.expectProblems("a.yaml/: ")
	f.annotate(nil)
	f.expectProblems("a.yaml/: ")
	f.remove("a.yaml")
	f.expectProblems() // the Events are given up
}

// TestAnnotationIsChanged changes the annotation of a source with problems. It is set again.
func TestAnnotationIsChanged(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.writeText("a.yaml", "kind: Other")
	f.start(f.config())
	for _, value := range []any{nil, "{}"} {
		f.expectProblems("a.yaml/: ")
		f.annotate(value)
	}
	f.expectProblems("a.yaml/: ")
}

// TestRestoreDelays checks that the annotation is set again after delays that grow, until the
// problems change.
func TestRestoreDelays(t *testing.T) {
	t.Parallel()
	p := &published{restore: newBackoff()}
	namespace := &v1.Namespace{}
	change := func() time.Duration {
		p.setShown(nil, "value")
		delay, changed := p.isChanged(namespace, "annotation")
		if _, again := p.isChanged(namespace, "annotation"); !changed || again {
			t.Errorf("changed: %t, once more: %t", changed, again)
		}
		return delay
	}
	p.announce(nil)
	var sum time.Duration
	for range 20 {
		sum += change()
	}
	if sum < 10*retryMaxDelay {
		t.Errorf("set again 20 times within %s", sum)
	}
	if p.announce([]source.Problem{{Message: "b"}}); change() > time.Second {
		t.Error("the delay is not short again")
	}
}

// annotate changes the annotation of the source, as another client.
func (f *fixture) annotate(value any) {
	f.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{f.identity.StatusAnnotation(): value}}})
	f.must(err)
	_, err = f.admin.TenancyV1().Namespaces().Patch(f.Context(), f.namespace, types.MergePatchType, patch, metav1.PatchOptions{})
	f.must(err)
}
