// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package podsource

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestRoleIsNotBound starts a controller whose first writes of the RoleBinding fail. The Pods
// of the Namespace stay.
func TestRoleIsNotBound(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("a.yaml", newPod("a"))
	_, stop := f.start(f.config())
	before := f.expect("a-node-1=image:1")["a-node-1"]
	stop()

	var writes atomic.Int32
	f.wrap = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if strings.HasSuffix(req.URL.Path, "/rolebindings") && writes.Add(1) < 3 {
				return nil, errors.New("connection refused")
			}
			return next.RoundTrip(req)
		})
	}
	c, _ := f.start(f.config())
	f.expectReady(c)
	if pod := f.expect("a-node-1=image:1")["a-node-1"]; pod.UID != before.UID || writes.Load() < 3 {
		t.Errorf("after %d writes of the RoleBinding, the Pod was %v, and is %v", writes.Load(), before.ObjectMeta, pod.ObjectMeta)
	}
}
