// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
)

// deadlineWriter records the deadline.
type deadlineWriter struct {
	http.ResponseWriter
	deadline time.Time
}

func (w *deadlineWriter) SetWriteDeadline(deadline time.Time) error {
	w.deadline = deadline
	return nil
}

func TestWriteDeadline(t *testing.T) {
	config := &genericapiserver.Config{
		RequestTimeout:    time.Minute,
		MinRequestTimeout: 1800,
		LongRunningFunc:   genericfilters.BasicLongRunningRequestCheck(sets.NewString("watch"), sets.NewString("log")),
		RequestInfoResolver: genericapiserver.NewRequestInfoResolver(&genericapiserver.Config{
			LegacyAPIGroupPrefixes: sets.NewString(genericapiserver.DefaultLegacyAPIPrefix),
		}),
	}
	const pods = "/api/v1/namespaces/a/pods"
	for path, want := range map[string]time.Duration{
		pods:                       time.Minute,
		pods + "?timeoutSeconds=9": time.Minute,
		"/api/v1/nothing/at/all/":  time.Minute,
		// A watch can wait for its turn as long as another request, and then lasts its time.
		pods + "?watch=true":                                 time.Minute + time.Hour,
		pods + "?watch=true&timeoutSeconds=9":                time.Minute + 9*time.Second,
		pods + "?watch=true&timeoutSeconds=-9":               time.Minute + time.Hour,
		pods + "?watch=true&timeoutSeconds=nine":             time.Minute + time.Hour,
		pods + "?watch=true&timeoutSeconds=4611686018427387": time.Minute + (1<<31-1)*time.Second,
		pods + "/p/log":                                      0,
	} {
		w, before := &deadlineWriter{}, time.Now()
		handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			if want == 0 && !w.deadline.IsZero() {
				t.Errorf("%s: got a deadline", path)
			}
			if from, until := before.Add(want+writeGrace), time.Now().Add(want+writeGrace); want > 0 && (w.deadline.Before(from) || w.deadline.After(until)) {
				t.Errorf("%s: got %v after the start, want %v", path, w.deadline.Sub(before), want+writeGrace)
			}
		})
		WithWriteDeadline(handler, config).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	}
}
