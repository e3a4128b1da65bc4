// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/harness"
)

const (
	// minManifest is a LimitRange that contradicts a max of 1.
	minManifest = `
apiVersion: tenancy.borough.io/v1
kind: LimitRange
metadata:
  name: small
spec:
  limits:
  - type: Container
    min: {cpu: 2}
`
	contradiction = `LimitRanges "large" and "small" contradict each other: min cpu per Container is 2 in "small", but max cpu per Container is 1 in "large"`
)

// TestContradictingLimitRanges checks that writing a LimitRange returns a warning
// for each LimitRange that it contradicts, also for one just written.
func TestContradictingLimitRanges(t *testing.T) {
	t.Parallel()
	// A client writes the kind into what it sends, so each subtest sends its own.
	large := func() *v1.LimitRange { return newLimitRange("large", item("Container", "max cpu=1")) }
	header := `299 - "` + strings.ReplaceAll(contradiction, `"`, `\"`) + `"`
	wantWarnings := func(t *testing.T, answer harness.Answer, want ...string) {
		t.Helper()
		wantEqual(t, "warning headers", answer.Header.Values("Warning"), want)
	}

	t.Run("header", func(t *testing.T) {
		t.Parallel()
		ns := limits(t, borough, large())
		path, http := api+"/namespaces/"+ns+"/limitranges", borough.HTTP(t)
		post := func(path string) harness.Answer {
			return http.Do(t, "POST", path, []byte(minManifest), "Content-Type", asYAML)
		}
		dryRun := wantAnswer(t, post(path+"?dryRun=All"), 201)
		wantWarnings(t, dryRun, header)
		created := wantAnswer(t, post(path), 201)
		wantWarnings(t, created, header)

		patch := func(body string) harness.Answer {
			return wantAnswer(t, http.Do(t, "PATCH", path+"/small", []byte(body), "Content-Type", "application/merge-patch+json"), 200)
		}
		wantWarnings(t, patch(`{"spec":{"limits":[{"type":"Container","min":{"cpu":"500m"}}]}}`))
		wantWarnings(t, patch(`{"spec":{"limits":[{"type":"Container","min":{"cpu":"2"}}]}}`), header)
		wantWarnings(t, wantAnswer(t, http.Do(t, "DELETE", path+"/small", nil), 200))
	})

	t.Run("kubectl", func(t *testing.T) {
		t.Parallel()
		ns := limits(t, borough, large())
		stdout, stderr, err := borough.TryKubectl(t, minManifest, "apply", "-n", ns, "-f", "-")
		if err != nil {
			t.Fatalf("kubectl apply: %v\n%s", err, stderr)
		}
		wantEqual(t, "standard output", stdout, "limitrange.tenancy.borough.io/small created\n")
		wantEqual(t, "standard error", stderr, "Warning: "+contradiction+"\n")
		manifest := "apiVersion: tenancy.borough.io/v1\nkind: LimitRange\nmetadata: {name: another}\nspec: {limits: [{type: Pod, max: {cpu: 1}}]}\n"
		_, stderr, err = borough.TryKubectl(t, manifest, "create", "--dry-run=server", "-n", ns, "-f", "-")
		if err != nil {
			t.Fatalf("kubectl create: %v\n%s", err, stderr)
		}
		wantEqual(t, "standard error", stderr,
			"Warning: LimitRanges \"another\" and \"small\" contradict each other: min cpu per Container is 2 in \"small\", but max cpu per Pod is 1 in \"another\"\n")
	})
}

// TestOrderOfLimitRanges creates LimitRanges in random orders, and checks that
// the defaults of one Pod and the violations of another are always the same.
func TestOrderOfLimitRanges(t *testing.T) {
	t.Parallel()
	lrs := []*v1.LimitRange{
		newLimitRange("a", item("Container", "max cpu=2"), item("Pod", "max memory=1Gi")),
		newLimitRange("b", item("Container", "default cpu=1 memory=512Mi", "defaultRequest cpu=500m")),
		newLimitRange("c", item("Container", "default memory=256Mi", "min memory=64Mi"), item("Pod", "ratio cpu=2")),
		newLimitRange("d", item("Container", "default example.com/gpu=1", "max cpu=1500m memory=2Gi")),
		newLimitRange("e", item("Pod", "min cpu=100m", "max cpu=3")),
	}
	type result struct {
		Resources  corev1.ResourceRequirements
		Annotation string
		Rejection  string
	}
	outcome := func(t *testing.T, order []*v1.LimitRange) result {
		ns := limits(t, borough, order...)
		got := createPod(t, borough, ns, newPod("p", withResources(quantities("cpu=1500m"), quantities("cpu=1500m"))))
		_, err := borough.Client(t).TenancyV1().Pods(ns).Create(t.Context(), newPod("q", withResources(quantities("cpu=1"), quantities("cpu=4 memory=3Gi"))), metav1.CreateOptions{})
		return result{got.Spec.Containers[0].Resources, got.Annotations[annotation], wantCode(t, err, http.StatusForbidden).Message}
	}
	const violations = `pods.tenancy.borough.io "q" is forbidden: [` +
		`LimitRange "a": maximum cpu usage per Container is 2, but limit is 4, ` +
		`LimitRange "a": maximum memory usage per Pod is 1Gi, but limit is 3Gi, ` +
		`LimitRange "c": cpu max limit to request ratio per Pod is 2, but provided ratio is 4.000000, ` +
		`LimitRange "d": maximum cpu usage per Container is 1500m, but limit is 4, ` +
		`LimitRange "d": maximum memory usage per Container is 2Gi, but limit is 3Gi, ` +
		`LimitRange "e": maximum cpu usage per Pod is 3, but limit is 4]`
	want := result{
		corev1.ResourceRequirements{Requests: quantities("cpu=1500m memory=512Mi example.com/gpu=1"), Limits: quantities("cpu=1500m memory=512Mi example.com/gpu=1")},
		"LimitRanger plugin set: example.com/gpu, memory request for container c; example.com/gpu, memory limit for container c",
		violations,
	}
	seed := rand.Uint64()
	t.Logf("the seed is %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 12 {
		random.Shuffle(len(lrs), func(i, j int) { lrs[i], lrs[j] = lrs[j], lrs[i] })
		var names []string
		for _, lr := range lrs {
			names = append(names, lr.Name)
		}
		wantEqual(t, "outcome of "+strings.Join(names, ", "), outcome(t, lrs), want)
	}
}
