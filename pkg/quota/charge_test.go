// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	quotav1 "k8s.io/apiserver/pkg/quota/v1"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// allocated returns a change of a Pod by which its node reports what it has allocated to a.
func allocated(resources string) func(*tenancy.Pod) {
	return func(p *tenancy.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", AllocatedResources: list(resources)}}
	}
}

func TestUsed(t *testing.T) {
	cpu := func(quantity string) *tenancy.Pod { return podOf(container("a", "cpu="+quantity, "")) }
	for name, test := range map[string]struct {
		quota    *tenancy.ResourceQuota
		old, new *tenancy.Pod
		status   bool   // whether it is an update of the status
		used     string // "" if it does not change
		denial   string
	}{
		"a Pod that fits":            {quota: counted("pods=2,cpu=2", "pods=1,cpu=1"), new: cpu("1"), used: "pods=2,cpu=2"},
		"resources without a limit":  {quota: counted("services=1", "services=0"), new: cpu("1")},
		"a Pod outside of the scope": {quota: counted("pods=0", "pods=0", corev1.ResourceQuotaScopeTerminating), new: cpu("1")},
		"a Pod too many": {
			quota: counted("pods=1,count/pods=1,cpu=9", "pods=1,count/pods=1,cpu=1"), new: cpu("1"),
			denial: "exceeded quota: q, requested: count/pods=1,pods=1, used: count/pods=1,pods=1, limited: count/pods=1,pods=1",
		},
		"a Pod that names no CPU": {
			quota: counted("cpu=1,limits.memory=1", "cpu=0,limits.memory=0"), new: podOf(container("b", "", ""), container("a", "", "memory=1")),
			denial: "failed quota: q: must specify cpu for: a,b; limits.memory for: b",
		},
		"init containers must name it too": {
			quota:  counted("requests.cpu=1", "requests.cpu=0"),
			new:    with(cpu("1"), func(p *tenancy.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "i"}} }),
			denial: "failed quota: q: must specify requests.cpu for: i",
		},
		"the Pod may name it itself": {
			quota: counted("cpu=2", "cpu=0"),
			new: with(podOf(container("a", "", "")), func(p *tenancy.Pod) {
				p.Spec.Resources = &corev1.ResourceRequirements{Requests: list("cpu=2")}
			}),
			used: "cpu=2",
		},
		"other resources need not be named": {quota: counted("ephemeral-storage=1,requests.example.com/gpu=1,pods=1", "ephemeral-storage=0,requests.example.com/gpu=0,pods=0"), new: podOf(container("a", "", "")), used: "ephemeral-storage=0,requests.example.com/gpu=0,pods=1"},
		"a delete":                          {quota: counted("pods=0,cpu=0", "pods=2,cpu=3"), old: cpu("1"), used: "pods=1,cpu=2"},
		"growth":                            {quota: counted("cpu=2", "cpu=1"), old: cpu("1"), new: cpu("2"), used: "cpu=2"},
		"too much growth": {
			quota: counted("cpu=2", "cpu=1"), old: cpu("1"), new: cpu("2500m"),
			denial: "exceeded quota: q, requested: cpu=1500m, used: cpu=1, limited: cpu=2",
		},
		"growth that the node reports": {
			quota: counted("cpu=2,limits.memory=1", "cpu=2,limits.memory=0"), old: cpu("1"), new: with(cpu("1"), allocated("cpu=2,example.com/gpu=1")), status: true,
			used: "cpu=3,limits.memory=0",
		},
		"growth of a resource that the Pod does not name": {
			quota: counted("requests.example.com/gpu=1", "requests.example.com/gpu=1"), old: cpu("1"), new: with(cpu("1"), allocated("example.com/gpu=1")), status: true,
			used: "requests.example.com/gpu=2",
		},
		"growth of the request up to what the node reports": {
			quota: counted("cpu=2", "cpu=3"), old: with(cpu("1"), allocated("cpu=2")), new: with(cpu("3"), allocated("cpu=2")),
			denial: "exceeded quota: q, requested: cpu=1, used: cpu=3, limited: cpu=2",
		},
		"a resize, where the node has not shrunk another container yet": {
			quota:  counted("cpu=4", "cpu=4"),
			old:    with(podOf(container("a", "cpu=1", ""), container("b", "cpu=1", "")), allocated("cpu=3")),
			new:    with(podOf(container("a", "cpu=1", ""), container("b", "cpu=3", "")), allocated("cpu=3")),
			denial: "exceeded quota: q, requested: cpu=2, used: cpu=4, limited: cpu=4",
		},
		"a Pod that runs again": {
			quota: counted("cpu=2,pods=1", "cpu=2,pods=1"), old: with(cpu("1"), func(p *tenancy.Pod) { p.Status.Phase = corev1.PodFailed }), new: cpu("1"), status: true,
			denial: "exceeded quota: q, requested: cpu=1,pods=1, used: cpu=2,pods=1, limited: cpu=2,pods=1",
		},
		"a delete, of a Pod whose node reports negative amounts": {
			quota: counted("requests.example.com/gpu=1", "requests.example.com/gpu=1"), old: with(cpu("1"), allocated("example.com/gpu=-1")),
		},
		"less, although too much is used": {quota: counted("cpu=1", "cpu=3"), old: cpu("3"), new: cpu("2"), used: "cpu=2"},
		"no change, although too much is used and not named": {
			quota: counted("cpu=1,memory=1", "cpu=3,memory=0"), old: cpu("3"), new: with(cpu("3"), func(p *tenancy.Pod) { p.Labels = map[string]string{"a": "b"} }),
		},
		"more of one resource, less of another": {
			quota: counted("cpu=4,memory=1", "cpu=1,memory=3"), old: podOf(container("a", "cpu=1,memory=3", "")), new: podOf(container("a", "cpu=2,memory=2", "")),
			used: "cpu=2,memory=2",
		},
		"into a scope": {
			quota: counted("pods=0", "pods=0", corev1.ResourceQuotaScopeTerminating), old: cpu("1"),
			new:    with(cpu("1"), func(p *tenancy.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(1)) }),
			denial: "exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0",
		},
		"into a scope, where a resource must be named": {
			quota: counted("limits.cpu=1", "limits.cpu=0", corev1.ResourceQuotaScopeTerminating), old: cpu("1"),
			new:    with(cpu("1"), func(p *tenancy.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(1)) }),
			denial: "failed quota: q: must specify limits.cpu for: a",
		},
		"out of a scope": {
			quota: counted("pods=0", "pods=1", corev1.ResourceQuotaScopeNotTerminating), old: cpu("1"),
			new:  with(cpu("1"), func(p *tenancy.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(1)) }),
			used: "pods=0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			change := &Change{Resource: pods, StatusOnly: test.status}
			if test.old != nil {
				change.Old = Of(pods, test.old)
			}
			if test.new != nil {
				change.New = Of(pods, test.new)
			}
			used, denial := change.Used(test.quota)
			switch {
			case (denial != nil) != (test.denial != "") || denial != nil && denial.Error() != test.denial:
				t.Errorf("got the denial %v, want %s", denial, test.denial)
			case denial.Exceeded() != strings.HasPrefix(test.denial, "exceeded "):
				t.Errorf("%v: Exceeded returned %v", denial, denial.Exceeded())
			case (used != nil) != (test.used != "") || !quotav1.Equals(used, list(test.used)):
				t.Errorf("got the usage %s, want %s", listText(used), test.used)
			}
		})
	}
}

// TestUsedOfUncounted deletes an object that was not counted. The quota has to be counted again.
func TestUsedOfUncounted(t *testing.T) {
	change := &Change{Resource: pods, Old: Of(pods, podOf(container("a", "cpu=1", "")))}
	if used, denial := change.Used(counted("cpu=2,pods=2", "cpu=0,pods=0")); denial != nil || used == nil || len(used) != 0 {
		t.Errorf("got %s, %v", listText(used), denial)
	}
	change = &Change{Resource: pods, Old: Of(pods, podOf(container("a", "cpu=1,memory=2", ""))), New: Of(pods, podOf(container("a", "cpu=2,memory=1", "")))}
	if used, denial := change.Used(counted("cpu=2,memory=2", "cpu=0,memory=0")); denial != nil || used == nil || len(used) != 0 {
		t.Errorf("more of one resource, less of another: got %s, %v", listText(used), denial)
	}
	// A write that grows is denied all the same.
	change = &Change{Resource: pods, New: Of(pods, podOf(container("a", "cpu=3", "")))}
	if used, denial := change.Used(counted("cpu=2,pods=2", "cpu=0,pods=-5")); denial == nil {
		t.Errorf("got %s, want a denial", listText(used))
	}
}

func TestIsNeutral(t *testing.T) {
	pod := podOf(container("a", "cpu=1", ""))
	changed := func(change func(*tenancy.Pod)) *Usage { return Of(pods, with(pod, change)) }
	for name, test := range map[string]struct {
		change Change
		want   bool
	}{
		"create":                            {Change{New: Of(pods, pod)}, false},
		"delete":                            {Change{Old: Of(pods, pod)}, false},
		"unknown":                           {Change{Unknown: true}, false},
		"a label":                           {Change{Old: Of(pods, pod), New: changed(func(p *tenancy.Pod) { p.Labels = map[string]string{"a": "b"} })}, true},
		"the phase":                         {Change{Old: Of(pods, pod), New: changed(func(p *tenancy.Pod) { p.Status.Phase = corev1.PodRunning })}, true},
		"the end":                           {Change{Old: Of(pods, pod), New: changed(func(p *tenancy.Pod) { p.Status.Phase = corev1.PodFailed })}, false},
		"another scope":                     {Change{Old: Of(pods, pod), New: changed(func(p *tenancy.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(1)) })}, false},
		"another amount":                    {Change{Old: Of(pods, pod), New: Of(pods, podOf(container("a", "cpu=2", "")))}, false},
		"the same amount in another format": {Change{Old: Of(pods, pod), New: Of(pods, podOf(container("a", "cpu=1000m", "")))}, true},
		"a LimitRange":                      {Change{Old: Of(limitRanges, &tenancy.LimitRange{}), New: Of(limitRanges, &tenancy.LimitRange{})}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.change.IsNeutral(); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestCompact(t *testing.T) {
	for text, integer := range map[string]bool{
		"0": true, "5": true, "100Gi": true, "1Ki": true, "100Ti": true, "100000Gi": true, "7Ei": true, "1e15": true,
		"100m": false, "1.5": false, "0.5Gi": true,
	} {
		quantity := resource.MustParse(text)
		list := corev1.ResourceList{"memory": quantity.DeepCopy()}
		Compact(list)
		got := list["memory"]
		if _, ok := got.AsInt64(); ok != integer {
			t.Errorf("%s is an integer: %t, want %t", text, ok, integer)
		}
		if got.String() != quantity.String() || got.Cmp(quantity) != 0 {
			t.Errorf("%s became %s", text, got.String())
		}
	}
}

func FuzzCompact(f *testing.F) {
	for _, text := range []string{"100Ti", "8Ei", "0.1Ki", "1e3", "12E", "-3.3Mi", "1n", "9223372036854775807", "9223372036854775808"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		quantity, err := resource.ParseQuantity(text)
		if err != nil || len(text) > 30 {
			return
		}
		want := quantity.DeepCopy()
		list := corev1.ResourceList{"memory": quantity}
		Compact(list)
		got := list["memory"]
		if got.String() != want.String() || got.Cmp(want) != 0 {
			t.Errorf("%s became %s", want.String(), got.String())
		}
	})
}

// TestAddCount checks that objects are counted by the same rule by which they are
// charged.
func TestAddCount(t *testing.T) {
	for name, change := range map[string]func(*corev1.ResourceQuotaSpec){
		"no scope":          func(*corev1.ResourceQuotaSpec) {},
		"an empty selector": func(s *corev1.ResourceQuotaSpec) { s.ScopeSelector = &corev1.ScopeSelector{} },
		"a scope":           func(s *corev1.ResourceQuotaSpec) { s.Scopes = []corev1.ResourceQuotaScope{"Terminating"} },
	} {
		t.Run(name, func(t *testing.T) {
			quota := counted("count/limitranges=3", "count/limitranges=0")
			change(&quota.Spec)
			total := NewTotal(quota)
			total.AddCount(limitRanges, 1)
			charged, _ := (&Change{Resource: limitRanges, New: Of(limitRanges, &tenancy.LimitRange{})}).Used(quota)
			if charged == nil {
				charged = quota.Status.Used
			}
			if got := total.Counted().Status.Used; !quotav1.Equals(got, charged) {
				t.Errorf("counted %s, charged %s", listText(got), listText(charged))
			}
		})
	}
}
