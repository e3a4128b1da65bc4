// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// TestFindings checks, without a cluster, that a load finds what was lost.
func TestFindings(t *testing.T) {
	pods := map[types.UID]*written{
		"stays": {name: "stays", versions: []uint64{2, 3}, label: "0"},
		"goes":  {name: "goes", versions: []uint64{4}, deleting: true, deleted: true},
	}
	pod := func(uid types.UID, label string) v1.Pod {
		return v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid, Labels: map[string]string{"patched": label}}}
	}
	goaway := failure{verb: "create", code: 503, text: "http2: cannot retry err [GOAWAY]"}
	complete := func() *watcher {
		return &watcher{versions: map[uint64]bool{2: true, 3: true, 4: true, 5: true}, deleted: map[types.UID]bool{"goes": true}}
	}
	watched := func(change func(*watcher)) error {
		w := complete()
		change(w)
		return w.compare(pods)
	}
	l := &load{pods: pods, requests: map[string]int{}, failures: map[failure]int{}, home: "home"}
	// The response of kube-apiserver to a request that it could not send.
	l.count("create", apierrors.NewGenericServerResponse(503, "POST", schema.GroupResource{}, "", goaway.text, 0, true))
	for what, found := range map[string]struct {
		err  error
		want bool
	}{
		"complete events":              {watched(func(*watcher) {}), false},
		"lost event":                   {watched(func(w *watcher) { delete(w.versions, 3) }), true},
		"lost event in a list instead": {watched(func(w *watcher) { delete(w.versions, 3); w.skipped = [][2]uint64{{2, 3}} }), false},
		"lost deletion":                {watched(func(w *watcher) { clear(w.deleted) }), true},
		"doubled event":                {watched(func(w *watcher) { w.doubled++ }), true},
		"complete Pods":                {l.compare(&v1.PodList{Items: []v1.Pod{pod("stays", "0")}}), false},
		"lost Pod":                     {l.compare(&v1.PodList{}), true},
		"lost patch":                   {l.compare(&v1.PodList{Items: []v1.Pod{pod("stays", "")}}), true},
		"lost deletion of a Pod":       {l.compare(&v1.PodList{Items: []v1.Pod{pod("stays", "0"), pod("goes", "")}}), true},
		"GOAWAY in a response":         {planned.check(l.failures), false},
		"GOAWAY":                       {planned.check(map[failure]int{goaway: 10}), false},
		"too many GOAWAY":              {planned.check(map[failure]int{goaway: 11}), true},
		"429":                          {planned.check(map[failure]int{{code: 429, retryAfter: true}: 1}), false},
		"429 without Retry-After":      {planned.check(map[failure]int{{code: 429}: 1}), true},
		"503 of a planned restart":     {planned.check(map[failure]int{{code: 503}: 1}), true},
		"503 of a killed server":       {killed.check(map[failure]int{{code: 503}: 1}), false},
		"500 of a killed server":       {killed.check(map[failure]int{{verb: "create", code: 500}: 1}), true},
		"404":                          {outage.check(map[failure]int{{code: 404}: 1}), true},
	} {
		if (found.err != nil) != found.want {
			t.Errorf("%s: got %v", what, found.err)
		}
	}
}
