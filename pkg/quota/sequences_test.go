// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	quotav1 "k8s.io/apiserver/pkg/quota/v1"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// TestSequences checks that the usage after any sequence of changes, each charged on
// its own, is the sum over the objects, and that no change makes it grow beyond the
// limit.
func TestSequences(t *testing.T) {
	const seed, sequences, steps = 1, 50, 100
	r := rand.New(rand.NewPCG(seed, 0))
	charges, denials := 0, 0
	units := []string{"", "2Ei", "250E"} // sums of large ones are hard to write
	for sequence := range sequences {
		quota := randomQuota(r)
		objects := map[string]*tenancy.Pod{}
		quota.Status = sumOf(quota, objects)
		SetRules(quota, Rules)
		for step := range steps {
			if r.IntN(10) == 0 { // other limits for the same resources
				quota.Spec.Hard = randomHard(r, slices.Sorted(maps.Keys(quota.Spec.Hard)))
				quota.Status.Hard = quota.Spec.Hard
			}
			name := fmt.Sprint(r.IntN(8))
			change := &Change{Resource: pods}
			old, new := objects[name], (*tenancy.Pod)(nil)
			if old != nil {
				change.Old = Of(pods, old)
			}
			if old == nil || r.IntN(3) > 0 {
				new = randomPod(r, units[sequence%len(units)])
				change.New = Of(pods, new)
			}
			used, denial := change.Used(quota)
			if denial != nil {
				denials++
				continue
			}
			if change.IsNeutral() && used != nil {
				t.Fatalf("step %d: a neutral change changes the usage", step)
			}
			before := quota.Status.Used
			if used != nil {
				charges++
				quota.Status.Used = reread(used)
			}
			if objects[name] = new; new == nil {
				delete(objects, name)
			}
			if want := sumOf(quota, objects).Used; !quotav1.Equals(quota.Status.Used, want) {
				t.Fatalf("step %d: the usage is %s, the objects use %s", step, listText(quota.Status.Used), listText(want))
			}
			for name, quantity := range quota.Status.Used {
				if was, hard := before[name], quota.Status.Hard[name]; quantity.Cmp(was) > 0 && quantity.Cmp(hard) > 0 {
					t.Fatalf("step %d: %s has grown to %s of %s", step, name, quantity.String(), hard.String())
				}
			}
			if !Counted(quota) {
				t.Fatalf("step %d: the quota is no longer counted", step)
			}
		}
	}
	if charges < 500 || denials < 500 {
		t.Errorf("only %d charges and %d denials", charges, denials)
	}
}

// reread returns a list as it is read when it was written.
func reread(written corev1.ResourceList) corev1.ResourceList {
	read := corev1.ResourceList{}
	for name, quantity := range written {
		read[name] = resource.MustParse(quantity.String())
	}
	return read
}

// sumOf returns the status of a quota of which the objects are counted.
func sumOf(quota *tenancy.ResourceQuota, objects map[string]*tenancy.Pod) corev1.ResourceQuotaStatus {
	total := NewTotal(quota)
	for _, pod := range objects {
		total.Add(Of(pods, pod))
	}
	return total.Counted().Status
}

func randomQuota(r *rand.Rand) *tenancy.ResourceQuota {
	names := []corev1.ResourceName{"pods", "count/pods", "cpu", "requests.memory", "limits.cpu", "requests.example.com/gpu", "services"}
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	quota := &tenancy.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: randomHard(r, names[:1+r.IntN(4)])}}
	switch r.IntN(4) {
	case 0:
		quota.Spec.ScopeSelector = &corev1.ScopeSelector{}
	case 1, 2:
		scopes := []corev1.ResourceQuotaScope{"Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass"}
		quota.Spec.Scopes = []corev1.ResourceQuotaScope{scopes[r.IntN(len(scopes))]}
	}
	return quota
}

func randomHard(r *rand.Rand, names []corev1.ResourceName) corev1.ResourceList {
	hard := corev1.ResourceList{}
	for _, name := range names {
		hard[name] = *resource.NewQuantity(r.Int64N(8), resource.DecimalSI)
		if r.IntN(4) == 0 {
			hard[name] = resource.MustParse("4e21")
		}
	}
	return hard
}

// randomPod returns a Pod that requests memory in a unit.
func randomPod(r *rand.Rand, unit string) *tenancy.Pod {
	pod := podOf()
	for i := range 1 + r.IntN(2) {
		requests, limits := "", ""
		if r.IntN(4) > 0 {
			requests = fmt.Sprintf("cpu=%dm,memory=%d%s,example.com/gpu=%d", r.IntN(2000), r.IntN(3), unit, r.IntN(2))
			limits = fmt.Sprintf("cpu=%dm", 2000+r.IntN(100))
		}
		pod.Spec.Containers = append(pod.Spec.Containers, container(fmt.Sprint(i), requests, limits))
	}
	if r.IntN(4) == 0 { // 1 byte, not stored as an integer
		pod.Spec.Resources = &corev1.ResourceRequirements{Requests: list("memory=0.0009765625Ki")}
		pod.Spec.Overhead = list("memory=1")
	}
	if r.IntN(3) == 0 {
		pod.Spec.ActiveDeadlineSeconds = new(int64(1))
	}
	if r.IntN(3) == 0 {
		pod.Spec.PriorityClassName = "high"
	}
	if r.IntN(4) == 0 {
		pod.Status.Phase = corev1.PodSucceeded
	}
	return pod
}
