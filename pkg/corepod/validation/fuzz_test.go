// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"math/rand"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/randfill"

	"github.com/borough-io/borough/pkg/corepod/validation"
)

var podOps = []string{"create", "update", "status", "resize", "ephemeral"}

// FuzzValidatePod shows that no Pod makes validation panic, that the same Pod
// always gets the same errors, and that validation changes nothing in what it
// looks at.
func FuzzValidatePod(f *testing.F) {
	for seed := range int64(20) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed int64) {
		rng := rand.New(rand.NewSource(seed))
		pod, old := randomPod(rng), randomPod(rng)
		if rng.Intn(2) == 0 { // mostly the same
			old.Spec = *pod.Spec.DeepCopy()
			fill(rng).Fill(&old.Spec.Tolerations)
		}
		for _, op := range podOps {
			podBefore, oldBefore := pod.DeepCopy(), old.DeepCopy()
			// The library goes through labels and annotations in any order.
			want := slices.Sorted(slices.Values(messages(validatePod(op, pod, old))))
			got := slices.Sorted(slices.Values(messages(validatePod(op, pod, old))))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: other errors the second time:\n%s", op, diff)
			}
			podBefore.ResourceVersion, oldBefore.ResourceVersion = pod.ResourceVersion, old.ResourceVersion
			if !apiequality.Semantic.DeepEqual(pod, podBefore) || !apiequality.Semantic.DeepEqual(old, oldBefore) {
				t.Errorf("%s changes what it validates", op)
			}
		}
	})
}

// FuzzValidatePodUnchanged takes a valid Pod and changes some of it at random.
// If it is still valid, then so is any update that changes nothing.
func FuzzValidatePodUnchanged(f *testing.F) {
	for seed := range int64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed int64) {
		rng := rand.New(rand.NewSource(seed))
		pod, random := validPod(), randomPod(rng)
		spec := &pod.Spec
		for _, change := range []func(){
			func() {},
			func() { spec.ActiveDeadlineSeconds = random.Spec.ActiveDeadlineSeconds },
			func() {
				spec.HostNetwork, spec.HostPID, spec.HostUsers = random.Spec.HostNetwork, random.Spec.HostPID, random.Spec.HostUsers
			},
			func() { spec.SecurityContext = random.Spec.SecurityContext },
			func() { spec.Overhead = random.Spec.Overhead },
			func() { spec.DNSConfig = random.Spec.DNSConfig },
			func() { spec.ReadinessGates = random.Spec.ReadinessGates },
			func() { spec.ImagePullSecrets = random.Spec.ImagePullSecrets },
			func() { pod.Labels, pod.Annotations = random.Labels, random.Annotations },
		} {
			if rng.Intn(3) > 0 {
				continue
			}
			before := pod.DeepCopy()
			if change(); len(validation.ValidatePodCreate(pod)) > 0 {
				*pod = *before
				spec = &pod.Spec
			}
		}
		for _, op := range podOps {
			if errs := validatePod(op, pod, pod.DeepCopy()); len(errs) > 0 {
				t.Errorf("%s of a valid Pod that changes nothing: %v", op, errs)
			}
		}
	})
}

func randomPod(rng *rand.Rand) *corev1.Pod {
	var pod corev1.Pod
	fill(rng).Fill(&pod)
	return &pod
}

func fill(rng *rand.Rand) *randfill.Filler {
	return randfill.NewWithSeed(rng.Int63()).NilChance(0.4).NumElements(0, 3).MaxDepth(12).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewMilliQuantity(c.Int63n(10000)-1000, resource.DecimalSI)
		},
		func(s *string, c randfill.Continue) {
			words := []string{"", "a", "A", "a.b", "a/b", "..", "10.0.0.1", "hugepages-2Mi", "cpu", "example.com/x", "v1", "metadata.labels['a']", "limits.cpu", c.String(0)}
			*s = words[c.Intn(len(words))]
		},
	)
}
