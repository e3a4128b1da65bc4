// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
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
		pods + "/p/log":                                      time.Minute, // is not served
		"/debug/pprof/profile?seconds=9":                     0,
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

// TestDeadlineOfErrors checks that a client has to read an error at once.
func TestDeadlineOfErrors(t *testing.T) {
	config := &genericapiserver.Config{
		RequestTimeout:      time.Minute,
		LongRunningFunc:     genericfilters.BasicLongRunningRequestCheck(sets.NewString("watch"), sets.NewString()),
		RequestInfoResolver: genericapiserver.NewRequestInfoResolver(&genericapiserver.Config{}),
	}
	for code, want := range map[int]time.Duration{
		http.StatusOK:        config.RequestTimeout + writeGrace,
		http.StatusFound:     config.RequestTimeout + writeGrace,
		http.StatusForbidden: writeGrace, http.StatusInternalServerError: writeGrace,
	} {
		w, before := &deadlineWriter{ResponseWriter: httptest.NewRecorder()}, time.Now()
		handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
		WithWriteDeadline(handler, config).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		if w.deadline.Before(before.Add(want)) || w.deadline.After(time.Now().Add(want)) {
			t.Errorf("%d: got the deadline %v, want %v after the start", code, w.deadline.Sub(before), want)
		}
	}
}

// TestDeadlineOfRefusals refuses requests before WithWriteDeadline, on a connection on which the
// deadline of the request before has passed.
func TestDeadlineOfRefusals(t *testing.T) {
	serializer := serializer.NewCodecFactory(runtime.NewScheme())
	config := &genericapiserver.Config{
		Serializer: serializer,
		RequestInfoResolver: genericapiserver.NewRequestInfoResolver(&genericapiserver.Config{
			LegacyAPIGroupPrefixes: sets.NewString(genericapiserver.DefaultLegacyAPIPrefix),
		}),
	}
	next := http.NotFoundHandler()
	for path, handler := range map[string]http.Handler{
		"/" + strings.Repeat("x", maxPath):                            WithLimitedRequestLine(next, serializer),
		"/" + strings.Repeat("%3C", maxPath/9+1):                      WithLimitedRequestLine(next, serializer),
		"/readyz/etcd?exclude=" + strings.Repeat("x", maxHealthQuery): WithLimitedRequestLine(next, serializer),
		"/?fieldSelector=" + strings.Repeat(",", 1000):                WithLimitedQuery(next, serializer),
		"/?labelSelector=a+in+(" + strings.Repeat("%25,", 20) + "b)":  WithLimitedQuery(next, serializer),
		"/?limit=" + strings.Repeat("x", maxLoggedQuery):              WithLimitedQuery(next, serializer),
		"/api/v1/watch?" + strings.Repeat("x", maxLoggedQuery):        WithWriteDeadline(next, config),
	} {
		recorder := httptest.NewRecorder()
		w, before := &deadlineWriter{ResponseWriter: recorder}, time.Now()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if recorder.Code/100 != 4 || recorder.Code == http.StatusNotFound {
			t.Errorf("%.30s: %d", path, recorder.Code)
		}
		if w.deadline.Before(before.Add(writeGrace)) || w.deadline.After(time.Now().Add(writeGrace)) {
			t.Errorf("%.30s: got the deadline %v, want %v after the start", path, w.deadline, writeGrace)
		}
	}
}
