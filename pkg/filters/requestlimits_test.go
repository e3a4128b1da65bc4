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

// TestRequestLimits checks which patches and options are refused: those of a known type, with any
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
		code                    int // 0 if it is passed on
	}{
		"checked":         {"patch", "application/json-patch+json", bad, 400},
		"with parameters": {"patch", "application/json-patch+json;charset=utf-8", bad, 400},
		"within limits":   {"patch", "application/json-patch+json", `[{}]`, 0},
		"too long":        {"patch", "application/json-patch+json", long, 0},
		"unknown":         {"patch", "application/x", bad, 0},
		"CBOR":            {"patch", "application/apply-patch+cbor", "", 415},
		"not a patch":     {"create", "application/json-patch+json", bad, 0},

		"options of a delete":       {"delete", "", deep, 400},
		"options in YAML":           {"deletecollection", "application/yaml", bomb, 400},
		"options within limits":     {"delete", "application/json", `{"gracePeriodSeconds":0}`, 0},
		"options in another format": {"delete", "application/x", deep, 415},
		"options in CBOR":           {"deletecollection", "application/cbor", "\xd9\xd9\xf7\xa0", 415},
		"no options":                {"delete", "", "", 0},
		"no options in CBOR":        {"delete", "application/cbor", "", 0},
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
			if passed != (tc.code == 0) || !passed && w.Code != tc.code {
				t.Errorf("passed on: %t, %d %s", passed, w.Code, w.Body)
			}
			// Of what is too long the library needs only one byte more than it accepts.
			if want := tc.body[:min(len(tc.body), max(len(got), maxBytes+1))]; passed && got != want {
				t.Errorf("%d bytes were passed on", len(got))
			}
		})
	}
}
