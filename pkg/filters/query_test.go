// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/borough-io/borough/pkg/apis/tenancy/install"
)

// TestLimitedQuery checks which queries are refused before the client is authenticated: long ones
// that the library would log as a whole, and no others.
func TestLimitedQuery(t *testing.T) {
	long := strings.Repeat("\xff", 1<<20)
	scheme := runtime.NewScheme()
	install.Install(scheme)
	for name, tc := range map[string]struct {
		method, query, want string // empty if it is passed on
	}{
		"no query":                         {"GET", "", ""},
		"long":                             {"GET", "a=" + long, ""},
		"long, with valid options":         {"GET", "limit=1&timeoutSeconds=9&timeout=9s&watch=x&continue=x&resourceVersion=x&labelSelector=a&fieldSelector=a%3Db&a=" + long, ""},
		"an invalid limit":                 {"GET", "limit=x", ""},
		"an invalid timeout":               {"GET", "timeout=x", ""},
		"a long limit":                     {"GET", "limit=" + long, "the query cannot be decoded: strconv.ParseInt"},
		"long, with an invalid limit":      {"GET", "limit=x&a=" + long, `the query cannot be decoded: strconv.ParseInt: parsing "x"`},
		"HEAD":                             {"HEAD", "limit=x&a=" + long, "the query cannot be decoded"},
		"long, with an invalid timeout":    {"GET", "timeout=x&a=" + long, `the timeout in the query cannot be parsed: time: invalid duration "x"`},
		"long, with an invalid seconds":    {"GET", "watch=1&timeoutSeconds=" + long, "the query cannot be decoded: strconv.ParseInt"},
		"long, with an invalid label":      {"GET", "labelSelector=" + long, "the query cannot be decoded: "},
		"long, with an invalid field":      {"GET", "fieldSelector=" + long, "the query cannot be decoded: invalid selector"},
		"a timeout that is long":           {"DELETE", "timeout=" + long, "the timeout in the query cannot be parsed: time: invalid duration"},
		"options of a method without them": {"DELETE", "limit=x&a=" + long, ""},
	} {
		t.Run(name, func(t *testing.T) {
			req := httptest.NewRequest(tc.method, "/api/v1/pods", nil)
			req.URL.RawQuery = tc.query
			passed := false
			w := httptest.NewRecorder()
			WithLimitedQuery(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed = true }), serializer.NewCodecFactory(scheme)).ServeHTTP(w, req)
			text := strings.ReplaceAll(w.Body.String(), `\"`, `"`)
			if passed != (tc.want == "") || !passed && w.Code != http.StatusBadRequest || !strings.Contains(text, tc.want) || len(text) >= 4<<10 {
				t.Errorf("passed on: %t, %d with %d bytes: %.1000s", passed, w.Code, len(text), text)
			}
		})
	}
}
