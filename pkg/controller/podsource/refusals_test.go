// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package podsource

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics/testutil"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/source"
	"github.com/borough-io/borough/test/poll"
)

func cpu(quantity string) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(quantity)}
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
	}
}

// TestRefusals checks where a refusal is shown, and when the write is tried again.
func TestRefusals(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.start(f.config())
	f.expectProblems()
	poll.Eventually(t, func() string {
		if f.status().Node != "node-1" {
			return "the Namespace has no status"
		}
		return ""
	})
	client := f.admin.TenancyV1()
	_, err := client.LimitRanges(f.namespace).Create(t.Context(), &v1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "limits"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
		}}},
	}, metav1.CreateOptions{})
	f.must(err)
	_, err = client.ResourceQuotas(f.namespace).Create(t.Context(), &v1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "quota"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}},
	}, metav1.CreateOptions{})
	f.must(err)

	// The Pods of a file are written concurrently: one at a time makes it known which is refused.
	f.write("a.yaml", newPod("small", cpu("1")))
	f.expect("small-node-1=image:1")
	f.write("b.yaml", newPod("big", cpu("2")), newPod("invalid", image(" ")), newPod(strings.Repeat("x", 250)))
	f.write("c.yaml", newPod("more", cpu("1")))
	f.expectProblems(
		"b.yaml/big: maximum cpu usage per Container is 1, but limit is 2",
		"b.yaml/invalid: spec.containers[0].image",
		"b.yaml/"+strings.Repeat("x", 250)+": NAME-NODE",
		"c.yaml/more: exceeded quota: quota",
	)
	want := fmt.Sprintf(`
# HELP borough_source_refused_pods [ALPHA] Pods of a source that cannot be used, that the server has refused, or whose write or delete keeps failing.
# TYPE borough_source_refused_pods gauge
borough_source_refused_pods{source=%q} 4
`, f.dir)
	if err := testutil.GatherAndCompare(f.registry, strings.NewReader(want), "borough_source_refused_pods"); err != nil {
		t.Error(err)
	}

	// A Pod that is gone leaves room in the quota.
	f.remove("a.yaml")
	f.expect("more-node-1=image:1")
	// A new limit is a reason to try again. Then the quota refuses the Pod.
	_, err = client.LimitRanges(f.namespace).Patch(t.Context(), "limits", types.MergePatchType,
		[]byte(`{"spec":{"limits":[{"type":"Container","max":{"cpu":"4"}}]}}`), metav1.PatchOptions{})
	f.must(err)
	f.expectProblems(
		"b.yaml/big: exceeded quota: quota",
		"b.yaml/invalid: spec.containers[0].image",
		"b.yaml/"+strings.Repeat("x", 250)+": NAME-NODE",
	)
	_, err = client.ResourceQuotas(f.namespace).Patch(t.Context(), "quota", types.MergePatchType, []byte(`{"spec":{"hard":{"pods":"9"}}}`), metav1.PatchOptions{})
	f.must(err)
	f.expect("big-node-1=image:1", "more-node-1=image:1")
	f.remove("b.yaml")
	f.expect("more-node-1=image:1")
	f.expectProblems()

	// Each refusal is one Event, also if the write was tried again.
	events, err := f.kubernetes.EventsV1().Events(f.namespace).List(t.Context(), metav1.ListOptions{})
	f.must(err)
	count := map[string]int{}
	for _, event := range events.Items {
		if event.Reason != "PodRefused" || event.Regarding.Name != f.namespace || event.Regarding.Kind != "Namespace" {
			t.Errorf("the Event %v", event)
		}
		count[event.Note]++
	}
	invalid := 0
	for note, n := range count {
		if n > 1 {
			t.Errorf("%d Events: %s", n, note)
		}
		if strings.HasPrefix(note, "Pod invalid: ") {
			invalid++
		}
	}
	if invalid != 1 {
		t.Errorf("%d Events about the invalid Pod: %v", invalid, count)
	}
}

// TestQuotaChangesDuringWrite changes the quota that has refused a Pod, before it is known that
// the write was a refusal. That takes longer than limitsDelay.
func TestQuotaChangesDuringWrite(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	setQuota := func(pods string) error {
		_, err := f.admin.TenancyV1().ResourceQuotas(f.namespace).Patch(t.Context(), "quota", types.ApplyPatchType,
			[]byte(`{"apiVersion":"tenancy.borough.io/v1","kind":"ResourceQuota","metadata":{"name":"quota"},"spec":{"hard":{"pods":"`+pods+`"}}}`),
			metav1.PatchOptions{FieldManager: "test"})
		return err
	}
	var once sync.Once
	f.wrap = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if strings.HasSuffix(req.URL.Path, "/selfsubjectaccessreviews") {
				once.Do(func() {
					if err := setQuota("1"); err != nil {
						t.Error(err)
					}
					time.Sleep(2 * limitsDelay)
				})
			}
			return next.RoundTrip(req)
		})
	}
	c, _ := f.start(f.config())
	f.expectReady(c)
	f.must(setQuota("0"))
	f.write("a.yaml", newPod("a"))
	f.expect("a-node-1=image:1")
	f.expectProblems()
}

// TestPolicyChanges has a Pod refused by what has no events here, such as a policy of the
// cluster, and then admitted.
func TestPolicyChanges(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.retryPeriod = 10 * time.Millisecond
	var refused, reported atomic.Int32
	f.wrap = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/events") {
				defer reported.Add(1)
			}
			if req.Method != http.MethodPatch || !strings.Contains(req.URL.Path, "/pods/") || refused.Add(1) > 5 && reported.Load() > 0 {
				return next.RoundTrip(req)
			}
			return respond(apierrors.NewForbidden(podResource.GroupResource(), "a-node-1", errors.New("denied")))
		})
	}
	f.write("a.yaml", newPod("a"))
	f.start(f.config())
	f.expect("a-node-1=image:1")
	f.expectProblems()
	events, err := f.kubernetes.EventsV1().Events(f.namespace).List(t.Context(), metav1.ListOptions{})
	f.must(err)
	if len(events.Items) != 1 || !strings.HasSuffix(events.Items[0].Note, `"a-node-1" is forbidden: denied`) {
		t.Errorf("got the Events %v, want one", events.Items)
	}
}

// TestReplacementIsRefused checks that a Pod stays if what is to replace it is refused. The
// refusal is always the same.
func TestReplacementIsRefused(t *testing.T) {
	t.Parallel()
	for what, name := range map[string]string{"a short name": "a", "a long name": strings.Repeat("a", 60)} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.write("a.yaml", newPod(name))
			f.start(f.config())
			before := f.expect(name + "-node-1=image:1")[name+"-node-1"]
			f.write("a.yaml", newPod(name, func(pod *v1.Pod) {
				pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "", Value: "b"}}
			}))
			f.expectProblems("a.yaml/" + name + `: "` + name + `-node-1" is invalid: spec.containers[0].env[0].name: Required value`)
			if pod := f.expect(name + "-node-1=image:1")[name+"-node-1"]; pod.UID != before.UID {
				t.Error("the Pod was replaced")
			}
			// A field that does not exist.
			f.writeText("a.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: "+name+"}\nspec: {containers: [{name: c, image: 'image:2', imagee: x}]}")
			f.expectProblems("a.yaml/" + name + ": imagee")
			f.expect(name + "-node-1=image:1")
		})
	}
}

// TestNoAPIService has each DELETE of a source answered once with 404, as kube-apiserver does
// while there is no APIService. The object is not gone.
func TestNoAPIService(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var answered sync.Map // by method and path
	f.wrap = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if _, again := answered.LoadOrStore(req.Method+req.URL.Path, true); again || req.Method != http.MethodDelete {
				return next.RoundTrip(req)
			}
			recorder := httptest.NewRecorder()
			http.NotFound(recorder, req)
			return recorder.Result(), nil
		})
	}
	stop := f.runPruning(newPod("a"))
	f.remove("a.yaml")
	f.expect()
	f.must(stop())
	f.expectNamespaceGone()
}

// TestDiffWithoutAPIService compares while there is no APIService. The Namespace and its Pods
// are not missing.
func TestDiffWithoutAPIService(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("a.yaml", newPod("a"))
	f.must(f.new(f.config()).Converge(t.Context()))
	f.wrap = func(http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			recorder := httptest.NewRecorder()
			http.NotFound(recorder, req)
			return recorder.Result(), nil
		})
	}
	var out bytes.Buffer
	if err := f.new(f.config()).Diff(t.Context(), &out); err == nil || out.Len() > 0 {
		t.Errorf("got %s, %v, want only an error", out.String(), err)
	}
}

// TestConverge checks what --once and --dry-run do.
func TestConverge(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("a.yaml", newPod("a"))
	diff := func() string {
		t.Helper()
		var out bytes.Buffer
		if err := f.new(f.config()).Diff(t.Context(), &out); err != nil {
			t.Error(err)
		}
		return out.String()
	}
	if got := diff(); !strings.Contains(got, "--- api/a-node-1\n+++ source/a-node-1\n") || !strings.Contains(got, "\n+  - image: image:1\n") || !strings.HasSuffix(got, "\n") {
		t.Errorf("got %s", got)
	}
	f.must(f.new(f.config()).Converge(t.Context()))
	before := f.expect("a-node-1=image:1")["a-node-1"]
	if got := diff(); got != "" {
		t.Errorf("got %s", got)
	}

	f.write("a.yaml", newPod("a", func(pod *v1.Pod) {
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
	}))
	f.write("b.yaml", newPod("b"))
	if got := diff(); !strings.Contains(got, "+    - name: A\n+      value: b\n") || !strings.Contains(got, "+++ source/b-node-1") {
		t.Errorf("got %s", got)
	}
	if pod := f.expect("a-node-1=image:1")["a-node-1"]; pod.ResourceVersion != before.ResourceVersion {
		t.Error("the Pod has changed")
	}
	f.must(f.new(f.config()).Converge(t.Context())) // waits for the grace period
	if pod := f.expect("a-node-1=image:1", "b-node-1=image:1")["a-node-1"]; pod.UID == before.UID {
		t.Error("the Pod was not replaced")
	}

	f.remove("b.yaml")
	f.write("a.yaml", newPod("a", image(" ")))
	f.writeText("c.yaml", "x")
	var out bytes.Buffer
	if err := f.new(f.config()).Diff(t.Context(), &out); err == nil || !strings.Contains(err.Error(), "image") ||
		!strings.Contains(out.String(), "--- api/b-node-1") {
		t.Errorf("got %s, %v", out.String(), err)
	}
	err := f.new(f.config()).Converge(t.Context())
	if err == nil || !strings.Contains(err.Error(), "the Pod a: ") || !strings.Contains(err.Error(), "the file c.yaml: ") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
	f.expect("a-node-1=image:1")
}

// TestManyProblems checks that the annotation is bounded, and that a Namespace which sources
// share has none without problems.
func TestManyProblems(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 40 {
		f.writeText(fmt.Sprintf("%02d-%s.yaml", i, strings.Repeat("x", 200)), "")
	}
	config := f.config()
	config.Namespace = f.server.Namespace(t)
	f.namespace = config.Namespace
	c, err := New(f.server.Config(), config, f.metrics)
	f.must(err)
	if err := c.Converge(t.Context()); err == nil {
		t.Error("there are no problems")
	}
	status := f.status()
	if n := len(status.Problems); n == 0 || n == source.MaxProblems || n+status.MoreProblems != 40 {
		t.Errorf("%d problems and %d more", n, status.MoreProblems)
	}
	files, err := filepath.Glob(f.dir + "/*.yaml")
	f.must(err)
	for _, file := range files {
		f.must(os.Remove(file))
	}
	f.must(c.Converge(t.Context()))
	namespace, err := f.admin.TenancyV1().Namespaces().Get(t.Context(), f.namespace, metav1.GetOptions{})
	f.must(err)
	if len(namespace.Annotations) != 0 {
		t.Errorf("the annotations %v", namespace.Annotations)
	}
}

// TestLongProblems checks that the reason of a file and the name of a Pod are cut off, so
// that they are shown and hide no others.
func TestLongProblems(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.writeText("a.yaml", "apiVersion: v1\n"+strings.Repeat("a: 1\n", 1000))
	f.write("b.yaml", newPod(strings.Repeat("n", 1000)))
	f.write("c.yaml", newPod("UPPER"))
	f.start(f.config())
	f.expectProblems(`a.yaml/: key "a" already set in map`, "b.yaml/"+strings.Repeat("n", 250)+"...: must be no more than", "c.yaml/UPPER: invalid")
}
