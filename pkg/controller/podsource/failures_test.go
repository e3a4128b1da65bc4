// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package podsource

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// failing makes the requests of the controllers for the Pods with a method fail, while it is
// not "".
func (f *fixture) failing(status *apierrors.StatusError) (method *atomic.Value) {
	method = new(atomic.Value)
	method.Store("")
	f.wrap = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if req.Method != method.Load() || !strings.Contains(req.URL.Path, "/pods/") {
				return next.RoundTrip(req)
			}
			return respond(status)
		})
	}
	return method
}

// failures are the responses to requests for Pods while a webhook fails.
var failures = map[string]*apierrors.StatusError{
	"500": apierrors.NewInternalError(errors.New("failed calling webhook")),
	"403": apierrors.NewForbidden(podResource.GroupResource(), "a-node-1", errors.New("failed calling webhook")),
}

// TestFailuresAreReported has a webhook fail for long. The writes are tried again, and the
// reason is shown where refusals are.
func TestFailuresAreReported(t *testing.T) {
	t.Parallel()
	for name, status := range failures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			method := f.failing(status)
			f.write("a.yaml", newPod("a"))
			method.Store(http.MethodPatch)
			f.start(f.config())
			f.expectProblems("a.yaml/a: failed calling webhook")
			method.Store("")
			if name == "403" { // a write that was refused waits for a change of limits
				_, err := f.admin.TenancyV1().LimitRanges(f.namespace).Create(t.Context(), &v1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "limits"}}, metav1.CreateOptions{})
				f.must(err)
			}
			f.expect("a-node-1=image:1")
			f.expectProblems()

			method.Store(http.MethodDelete)
			f.remove("a.yaml")
			f.expectProblems("/a-node-1: failed calling webhook")
			method.Store("")
			f.expect()
			f.expectProblems()
		})
	}
}

// TestDeleteFails has the deletes of a Pod fail. No time to try again is returned with the
// error, so the caller backs off.
func TestDeleteFails(t *testing.T) {
	t.Parallel()
	for name, status := range failures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			method := f.failing(status)
			f.write("a.yaml", newPod("a"))
			_, stop := f.start(f.config())
			f.expect("a-node-1=image:1")
			stop()
			method.Store(http.MethodDelete)
			c := f.new(f.config())
			namespace, err := c.findNamespace(t.Context())
			f.must(err)
			if next, err := c.deletePods(t.Context(), namespace.UID); err == nil || !next.IsZero() {
				t.Errorf("got %v, %v, want an error and no time", next, err)
			}
		})
	}
}

// TestOnceShowsFailures ends --once while a write fails. The error has the reason.
func TestOnceShowsFailures(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.failing(failures["500"]).Store(http.MethodPatch)
	f.write("a.yaml", newPod("a"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- f.new(f.config()).Converge(ctx) }()
	f.expectProblems("a.yaml/a: failed calling webhook")
	cancel()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "the Pod a: ") || !strings.Contains(err.Error(), "failed calling webhook") {
		t.Errorf("got %v", err)
	}
}
