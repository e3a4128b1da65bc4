// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package purge

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// TestUnservedKinds purges a Namespace where a kind that discovery showed is not
// listed by its server: it is empty only if discovery no longer shows it.
func TestUnservedKinds(t *testing.T) {
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1beta1", Resource: "widgets"}
	notFound := apierrors.NewGenericServerResponse(http.StatusNotFound, "get", widgets.GroupResource(), "", "404 page not found", 0, true)
	notSupported := apierrors.NewMethodNotSupported(widgets.GroupResource(), "list")
	kinds := func(versions ...string) Discovered {
		found := newServer(t).discovered
		for _, version := range versions {
			found.Resources = append(found.Resources, Resource{GroupVersionResource: widgets.GroupResource().WithVersion(version), Delete: true, DeleteCollection: true})
		}
		return found
	}
	failed := kinds()
	failed.Failure = errors.New("the aggregator is down")
	unparsed := kinds()
	unparsed.ParseFailure = errors.New("a/b/c")
	for _, tc := range []struct {
		name string
		list error
		// again is what discovery shows when it is asked again.
		again Discovered
		goes  bool
	}{
		{"404, and no longer discovered", notFound, kinds(), true},
		{"405, and no longer discovered", notSupported, kinds(), true},
		{"404, but discovered", notFound, kinds("v1beta1"), false},
		{"405, but discovered", notSupported, kinds("v1beta1"), false},
		{"404, and discovered in another version", notFound, kinds("v1"), false},
		{"404, and discovery fails", notFound, failed, false},
		{"404, and discovery is unreadable", notFound, unparsed, false},
		{"403", forbidden(widgets), kinds(), false},
		{"503", unavailable(), kinds(), false},
		{"no answer", errors.New("connection refused"), kinds(), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t)
			s.add(limitRanges, object("l"))
			s.before = func(_, resource, _ string) error {
				if resource == "widgets" {
					return tc.list
				}
				return nil
			}
			d := s.deleter()
			d.discover = func(_ context.Context, since time.Time) Discovered {
				if since.IsZero() {
					return kinds("v1beta1")
				}
				return tc.again
			}
			err := d.Delete(t.Context(), s.terminating(), time.Time{}, &Progress{})
			ns := s.get("ns")
			if (err == nil) != tc.goes || (ns == nil) != tc.goes {
				t.Fatalf("got the error %v, and the Namespace %v", err, ns)
			}
			if !tc.goes && resourceIn(ns.Status.Termination, widgets.Group, widgets.Resource) == nil {
				t.Errorf("the termination does not name the kind: %+v", ns.Status.Termination)
			}
		})
	}
}

// TestNoAPIService makes a pass while kube-apiserver answers with 404 because there is no
// APIService. That does not mean that the Namespace is gone: the pass is to be repeated.
func TestNoAPIService(t *testing.T) {
	other := func(ns *v1.Namespace) { ns.Spec.Finalizers = append(ns.Spec.Finalizers, "example.com/other") }
	finalized := func(ns *v1.Namespace) { ns.Spec.Finalizers = nil }
	for first, modify := range map[string]func(*v1.Namespace){ // the first request that is answered so
		"create namespacepurges":     func(*v1.Namespace) {},
		"update namespaces/finalize": other,
		"update namespaces/status":   other,
		"delete namespaces":          finalized,
	} {
		t.Run(first, func(t *testing.T) {
			s := newServer(t)
			ns := s.terminating(modify)
			s.add(limitRanges, object("l"))
			away := false
			s.before = func(verb, resource, _ string) error {
				if away = away || verb+" "+resource == first; away {
					return apierrors.NewGenericServerResponse(http.StatusNotFound, verb, v1.Resource(resource), "ns", "404 page not found", 0, true)
				}
				return nil
			}
			if err := s.deleter().Delete(t.Context(), ns, time.Time{}, &Progress{}); err == nil {
				t.Error("no error, so the Namespace would be forgotten")
			}
			s.before = nil
			if err := s.deleter().Delete(t.Context(), s.get("ns"), time.Time{}, &Progress{}); err != nil || len(s.names(limitRanges)) > 0 {
				t.Errorf("with the APIService: got error %v, and %v is left", err, s.names(limitRanges))
			}
		})
	}
}

// TestWebhookFails has the webhook fail of one object. Our server then stops a purge for
// it, so the other objects are not deleted one by one. In other groups they are.
func TestWebhookFails(t *testing.T) {
	for _, tc := range []struct {
		resource schema.GroupVersionResource
		left     []string
	}{
		{limitRanges, []string{"fails", "other"}},
		{things, []string{"fails"}},
	} {
		t.Run(tc.resource.Resource, func(t *testing.T) {
			s := newServer(t)
			s.discoverForeign()
			s.add(tc.resource, object("fails"), object("other"))
			s.before = func(verb, resource, what string) error {
				if verb == "create" && tc.resource == limitRanges || verb == "deletecollection" && resource == "things" || what == "fails" {
					return apierrors.NewInternalError(errors.New("failed calling webhook"))
				}
				return nil
			}
			err := s.deleter().Delete(t.Context(), s.terminating(), time.Time{}, &Progress{})
			if err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
				t.Errorf("got error %v", err)
			}
			if diff := cmp.Diff(tc.left, s.names(tc.resource)); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
		})
	}
}
