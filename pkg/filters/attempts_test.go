// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/apis/tenancy/install"
	"github.com/borough-io/borough/pkg/storage/precondition"
)

// checks answers checks in turn.
type checks []struct {
	staleAt int64
	err     error
}

func (c *checks) Check(context.Context, precondition.Objects) (staleAt int64, err error) {
	next := (*c)[0]
	*c = (*c)[1:]
	return next.staleAt, next.err
}

// TestAttempts handles requests that are stale so many times.
func TestAttempts(t *testing.T) {
	const body = "the body of the request"
	required := precondition.Objects{Resource: tenancy.Resource("limitranges"), Namespace: "town"}
	type attempt = func(a *precondition.Attempt) (code int)
	created := func(a *precondition.Attempt) int { a.Try(); return 201 }
	rejected := func(a *precondition.Attempt) int { a.Require(required); return 403 }
	staleAt := func(revision int64) attempt {
		return func(a *precondition.Attempt) int {
			a.Require(required)
			a.Try()
			_ = a.Fail(revision)
			return 429
		}
	}
	for name, test := range map[string]struct {
		attempts []attempt
		checks   checks
		code     int
		min      []int64 // revisions of the reads of each attempt
	}{
		"written":                  {[]attempt{created}, nil, 201, []int64{0}},
		"nothing required":         {[]attempt{func(*precondition.Attempt) int { return 400 }}, nil, 400, []int64{0}},
		"stale, then written":      {[]attempt{staleAt(7), created}, nil, 201, []int64{0, 7}},
		"stale twice":              {[]attempt{staleAt(7), staleAt(8), created}, nil, 201, []int64{0, 7, 8}},
		"rejected":                 {[]attempt{rejected}, checks{{0, nil}}, 403, []int64{0}},
		"rejected, but stale":      {[]attempt{rejected, created}, checks{{7, nil}}, 201, []int64{0, 7}},
		"written, then rejected":   {[]attempt{staleAt(7), rejected}, checks{{0, nil}}, 403, []int64{0, 7}},
		"rejected, check fails":    {[]attempt{rejected}, checks{{0, errors.New("no etcd")}}, 500, []int64{0}},
		"an error of the server's": {[]attempt{func(a *precondition.Attempt) int { a.Require(required); return 504 }}, nil, 504, []int64{0}},
		"a dry run": {[]attempt{func(a *precondition.Attempt) int { a.Require(required); return 201 }, created},
			checks{{7, nil}}, 201, []int64{0, 7}},
	} {
		t.Run(name, func(t *testing.T) {
			var min []int64
			inner := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				n := len(min)
				a := precondition.From(req.Context())
				min = append(min, a.MinRevision())
				sent, err := io.ReadAll(req.Body)
				if err != nil || string(sent) != body {
					t.Errorf("attempt %d: the body is %q, %v", n, sent, err)
				}
				_ = req.Body.Close() // as the library does
				warning.AddWarning(req.Context(), "", fmt.Sprint("attempt ", n))
				w.Header().Set(fmt.Sprint("Attempt-", n), "yes")
				w.WriteHeader(test.attempts[n](a))
				fmt.Fprint(w, "answer ", n)
			})
			scheme := runtime.NewScheme()
			install.Install(scheme)
			handler := filters.WithWarningRecorder(WithAttempts(inner, &test.checks, serializer.NewCodecFactory(scheme)))
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, podRequest(t, "create", strings.NewReader(body)))

			if w.Code != test.code {
				t.Errorf("got %d %s, want %d", w.Code, w.Body, test.code)
			}
			if diff := cmp.Diff(test.min, min); diff != "" {
				t.Errorf("revisions that reads must not be older than: -want +got\n%s", diff)
			}
			if test.checks != nil && test.code == 500 {
				if !strings.Contains(w.Body.String(), "no etcd") {
					t.Errorf("got %s", w.Body)
				}
				return
			}
			last := len(test.attempts) - 1
			if got, want := w.Body.String(), fmt.Sprint("answer ", last); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if got, want := w.Header()["Warning"], []string{fmt.Sprintf(`299 - "attempt %d"`, last)}; !slices.Equal(got, want) {
				t.Errorf("got warnings %q, want %q", got, want)
			}
			for i := range test.attempts {
				if passed := w.Header().Get(fmt.Sprint("Attempt-", i)) != ""; passed != (i == last) {
					t.Errorf("the headers of attempt %d were passed on: %t", i, passed)
				}
			}
		})
	}
}

func podRequest(t *testing.T, verb string, body io.Reader) *http.Request {
	t.Helper()
	req := httptest.NewRequest(http.MethodPost, "/apis/tenancy.borough.io/v1/namespaces/town/pods", body)
	return req.WithContext(request.WithRequestInfo(t.Context(), &request.RequestInfo{
		IsResourceRequest: true, APIGroup: tenancy.GroupName, APIVersion: "v1", Resource: "pods", Verb: verb,
	}))
}

// TestReadsAreNoAttempts shows that other requests are passed on as they are.
func TestReadsAreNoAttempts(t *testing.T) {
	for _, verb := range []string{"get", "list", "watch", "delete", "deletecollection"} {
		w := httptest.NewRecorder()
		WithAttempts(http.HandlerFunc(func(inner http.ResponseWriter, req *http.Request) {
			if inner != http.ResponseWriter(w) || precondition.From(req.Context()) != nil {
				t.Errorf("%s is an attempt", verb)
			}
		}), nil, nil).ServeHTTP(w, podRequest(t, verb, nil))
	}
}

// TestWritesAreAttempts shows which requests are repeated: writes of what LimitRanges or quotas
// may apply to, but not those of other groups.
func TestWritesAreAttempts(t *testing.T) {
	for _, verb := range []string{"create", "update", "patch"} {
		for group, want := range map[string]bool{tenancy.GroupName: true, "": true, "rbac.authorization.k8s.io": false} {
			req := podRequest(t, verb, nil)
			info, _ := request.RequestInfoFrom(req.Context())
			info.APIGroup = group
			var attempted bool
			WithAttempts(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
				attempted = precondition.From(req.Context()) != nil
			}), nil, nil).ServeHTTP(httptest.NewRecorder(), req)
			if attempted != want {
				t.Errorf("%s of a Pod of group %q is an attempt: %t", verb, group, attempted)
			}
		}
	}
}

// TestAnswerWithoutCode answers without a code, which is OK: once it is verified.
func TestAnswerWithoutCode(t *testing.T) {
	attempts := 0
	w := httptest.NewRecorder()
	WithAttempts(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		attempts++
		precondition.From(req.Context()).Require(precondition.Objects{Resource: tenancy.Resource("limitranges"), Namespace: "town"})
		w.Header().Set("Attempt", fmt.Sprint(attempts))
		if n, err := fmt.Fprint(w, "answer ", attempts); n != len("answer 1") || err != nil {
			t.Errorf("wrote %d, %v", n, err)
		}
	}), &checks{{7, nil}, {0, nil}}, nil).ServeHTTP(w, podRequest(t, "create", nil))
	if w.Body.String() != "answer 2" || w.Header().Get("Attempt") != "2" {
		t.Errorf("got %q, %v", w.Body, w.Header())
	}
}

// TestLongBodiesAreNotRead shows that of a body no more is read than by those who
// bound it.
func TestLongBodiesAreNotRead(t *testing.T) {
	source := strings.NewReader(strings.Repeat("x", 1000))
	WithAttempts(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.ReadAll(io.LimitReader(req.Body, 10))
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	}), nil, nil).ServeHTTP(httptest.NewRecorder(), podRequest(t, "create", source))
	if source.Len() != 990 {
		t.Errorf("%d bytes were read", 1000-source.Len())
	}
}

// TestAuditOfAttempts shows that the audit event has the response that was sent.
func TestAuditOfAttempts(t *testing.T) {
	req := podRequest(t, "create", strings.NewReader("body"))
	ctx := audit.WithAuditContext(req.Context())
	event := audit.AuditContextFrom(ctx)
	if err := event.Init(audit.RequestAuditConfig{Level: auditinternal.LevelMetadata}, nil); err != nil {
		t.Fatal(err)
	}
	attempts := 0
	inner := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if attempts++; attempts == 1 {
			status := precondition.From(req.Context()).Fail(7).(apierrors.APIStatus).Status()
			event.LogResponseObject(&status, nil)
			w.WriteHeader(int(status.Code))
			return
		}
		w.WriteHeader(http.StatusCreated)
	})
	WithAttempts(inner, nil, nil).ServeHTTP(httptest.NewRecorder(), req.WithContext(ctx))
	if got := event.GetEventResponseStatus(); attempts != 2 || got != nil {
		t.Errorf("after %d attempts, the dropped response is in the event: %v", attempts, got)
	}
}
