// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package boroughtest_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/borough-io/borough/boroughtest"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
)

// TestNamespaceIsRemoved checks that a Namespace is gone, with its content, when its test
// has ended.
func TestNamespaceIsRemoved(t *testing.T) {
	s := boroughtest.Shared(t)
	client := newClient(t, s.Config())
	for name, use := range map[string]func(t *testing.T, ns string){
		"empty":        func(*testing.T, string) {},
		"with content": func(t *testing.T, ns string) { create(t, client, ns, pod("web")) },
		"deleted by the test": func(t *testing.T, ns string) {
			if err := client.CoreV1().Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		},
		"restarted": func(t *testing.T, ns string) {
			create(t, client, ns, pod("web"))
			s.Crash(t)
		},
	} {
		var ns string
		t.Run(name, func(t *testing.T) {
			ns = s.Namespace(t)
			use(t, ns)
		})
		if got, err := client.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}

// TestNamespaceRemains checks that a test fails with what its Namespace waits for.
func TestNamespaceRemains(t *testing.T) {
	s := boroughtest.Shared(t)
	for timeout := 2 * time.Second; ; timeout *= 2 { // until the controller has time to write the status
		got := remain(t, s, timeout)
		const want = "pods/web (finalizer example.com/backup)"
		if strings.Contains(got, want) {
			break
		}
		if timeout == 32*time.Second {
			t.Fatalf("the test failed with %q, which lacks %q", got, want)
		}
	}
}

// remain returns the error of a test whose Namespace has a Pod that cannot be removed.
func remain(t *testing.T, s *boroughtest.Server, timeout time.Duration) string {
	t.Helper()
	client := newClient(t, s.Config())
	fake := newFakeTest(t)
	ns := s.Namespace(fake, boroughtest.TerminationTimeout(timeout))
	create(t, client, ns, pod("web", "example.com/backup"))
	fake.end()
	got := strings.Join(fake.errors, "\n")
	for _, want := range []string{"delete the Namespace " + ns, fmt.Sprint("still there after ", timeout)} {
		if !strings.Contains(got, want) {
			t.Errorf("the test failed with %q, which lacks %q", got, want)
		}
	}
	release(t, client, ns) // the Namespace waits for nothing else
	return got
}

// release removes the finalizers of the Pod web.
func release(t *testing.T, client kubernetes.Interface, ns string) {
	t.Helper()
	if _, err := client.CoreV1().Pods(ns).Patch(t.Context(), "web", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestNamespaceIsRefused checks that a test fails if its Namespace is protected when it ends, or
// has lost its finalizers but not its content.
func TestNamespaceIsRefused(t *testing.T) {
	s := boroughtest.Shared(t)
	client := newClient(t, s.Config())
	tenancy, err := versioned.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	namespaces := tenancy.TenancyV1().Namespaces()
	protect := func(t *testing.T, ns string, protected bool) {
		t.Helper()
		patch := fmt.Sprintf(`{"spec":{"deletionProtection":%v}}`, protected)
		if _, err := namespaces.Patch(t.Context(), ns, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		timeout    time.Duration
		use, clean func(t *testing.T, ns string)
		want       string
	}{
		"protected": {
			timeout: time.Minute, // the request fails at once
			use:     func(t *testing.T, ns string) { protect(t, ns, true) },
			clean: func(t *testing.T, ns string) {
				protect(t, ns, false)
				if err := namespaces.Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			},
			want: "spec.deletionProtection",
		},
		"without finalizers": {
			timeout: time.Second,
			use: func(t *testing.T, ns string) {
				create(t, client, ns, pod("web", "example.com/backup"))
				if err := namespaces.Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
					terminating, err := namespaces.Get(t.Context(), ns, metav1.GetOptions{})
					if err != nil {
						return err
					}
					terminating.Spec.Finalizers = nil
					_, err = namespaces.Finalize(t.Context(), ns, terminating, metav1.UpdateOptions{})
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
			},
			clean: func(t *testing.T, ns string) { release(t, client, ns) },
			want:  "still there after 1s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			fake := newFakeTest(t)
			ns := s.Namespace(fake, boroughtest.TerminationTimeout(test.timeout))
			test.use(t, ns)
			fake.end()
			if got := strings.Join(fake.errors, "\n"); !strings.Contains(got, test.want) {
				t.Errorf("the test failed with %q, which lacks %q", got, test.want)
			}
			test.clean(t, ns)
		})
	}
}

func TestNamespaceNames(t *testing.T) {
	s := boroughtest.Shared(t)
	for name, want := range map[string]string{
		"":                       "testnamespacenames--00-[a-z0-9]{5}",
		"UPPER case_and/slash":   "testnamespacenames-upper-case-and-slash-[a-z0-9]{5}",
		"-é-":                    "testnamespacenames----[a-z0-9-]*-[a-z0-9]{5}",
		strings.Repeat("a", 300): "testnamespacenames-a{38}-[a-z0-9]{5}",
	} {
		t.Run(name, func(t *testing.T) {
			if got := s.Namespace(t); !regexp.MustCompile("^" + want + "$").MatchString(got) {
				t.Errorf("the Namespace of %s is %s, want %s", t.Name(), got, want)
			}
		})
	}
}
