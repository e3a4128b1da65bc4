// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/borough-io/borough/pkg/apis/tenancy/install"
	"github.com/borough-io/borough/pkg/requestlimits"
)

// TestRequestLimits checks which patches are refused: those of a known type, with any
// parameters of the type, but not those that are too long, which the library refuses.
func TestRequestLimits(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	const maxBytes = 40_000
	bad := `[` + strings.TrimSuffix(strings.Repeat(`{},`, requestlimits.MaxPatchOperations+1), ",") + `]`
	long := bad + strings.Repeat(" ", maxBytes)
	deep := `{"a":` + strings.Repeat("[", requestlimits.MaxDepth) + strings.Repeat("]", requestlimits.MaxDepth) + `}`
	bomb := "a: &a [" + strings.Repeat("1,", 101) + "]\nb: [" + strings.Repeat("*a,", 101) + "]\n"
	for name, tc := range map[string]struct {
		verb, contentType, body string
		passed                  bool
	}{
		"checked":         {"patch", "application/json-patch+json", bad, false},
		"with parameters": {"patch", "application/json-patch+json;charset=utf-8", bad, false},
		"within limits":   {"patch", "application/json-patch+json", `[{}]`, true},
		"too long":        {"patch", "application/json-patch+json", long, true},
		"unknown":         {"patch", "application/x", bad, true},
		"CBOR":            {"patch", "application/apply-patch+cbor", "", false},
		"not a patch":     {"create", "application/json-patch+json", bad, true},

		"options of a delete":       {"delete", "", deep, false},
		"options in YAML":           {"deletecollection", "application/yaml", bomb, false},
		"options within limits":     {"delete", "application/json", `{"gracePeriodSeconds":0}`, true},
		"options in another format": {"delete", "application/x", deep, true},
		"no options":                {"delete", "", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			var got string
			passed := false
			handler := WithRequestLimits(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
				body, err := io.ReadAll(req.Body)
				if err != nil {
					t.Error(err)
				}
				got, passed = string(body), true
			}), requestlimits.NewChecker(scheme), maxBytes, serializer.NewCodecFactory(scheme))
			req := podRequest(t, tc.verb, strings.NewReader(tc.body))
			req.Header.Set("Content-Type", tc.contentType)
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, req)
			if passed != tc.passed || !passed && w.Code/100 != 4 {
				t.Errorf("passed on: %t, %d %s", passed, w.Code, w.Body)
			}
			// Of what is too long the library needs only one byte more than it accepts.
			if want := tc.body[:min(len(tc.body), max(len(got), maxBytes+1))]; passed && got != want {
				t.Errorf("%d bytes were passed on", len(got))
			}
		})
	}
}
