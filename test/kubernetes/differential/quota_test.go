// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/borough-io/borough/test/poll"
)

var resourceQuotaType = reflect.TypeFor[corev1.ResourceQuota]()

// TestResourceQuotas creates ResourceQuotas, changes them, and reads them.
func TestResourceQuotas(t *testing.T) {
	checkGroups(t, few, generate(t, func(r *rand.Rand) scenario {
		m := newMutator(r)
		quota := randomQuota(r, "q")
		for range max(0, r.IntN(4)-1) {
			m.mutate(quota, resourceQuotaType, "/spec", "/metadata/labels", "/metadata/annotations", "/metadata/name", "/metadata/generateName", "/metadata/finalizers")
		}
		s := scenario{Steps: []step{{Do: "POST resourcequotas", Body: quota}, settledQuota}}
		if r.IntN(2) == 0 {
			quota = randomQuota(r, "q")
			s.Steps[0].Body = clone(quota)
			s.Steps = append(s.Steps, changeOf(m, "resourcequotas/q", quota, resourceQuotaType, "/spec", "/metadata", "/status"), settledQuota)
		}
		return s
	}))
}

// These wait until Kubernetes has counted what a quota, or all quotas, limit.
var (
	settledQuota  = step{Do: "GET resourcequotas/q", Settle: true}
	settledQuotas = step{Do: "GET resourcequotas", Settle: true}
)

// TestQuotas creates Pods in Namespaces with ResourceQuotas, and changes and deletes
// them.
func TestQuotas(t *testing.T) {
	checkGroups(t, few, generate(t, func(r *rand.Rand) scenario {
		var s scenario
		add := func(steps ...step) { s.Steps = append(s.Steps, steps...) }
		create := func(i int) {
			pod := podOfQuota(r)
			pod["metadata"] = object{"name": fmt.Sprint("p", i)}
			add(step{Do: "POST pods", Body: pod})
		}
		count := 8 + r.IntN(5)
		for i := range r.IntN(3) {
			create(i)
		}
		for i := range 1 + r.IntN(3) {
			add(step{Do: "POST resourcequotas", Body: randomQuota(r, fmt.Sprint("q", i))})
		}
		add(settledQuotas)
		for i := range count {
			name := fmt.Sprint("pods/p", r.IntN(i+1))
			switch r.IntN(12) {
			case 0, 1:
				add(step{Do: "DELETE " + name, Body: object{"gracePeriodSeconds": 0}})
			case 2:
				add(step{Do: "PATCH " + name + "/status", As: "merge", Body: object{"status": object{"phase": pick(r, []string{"Running", "Succeeded", "Failed"})}}})
			case 3:
				add(step{Do: "PATCH " + name, As: "merge", Body: object{"spec": object{"activeDeadlineSeconds": 1 + r.IntN(100)}}})
			case 4:
				container := object{"name": "c0", "resources": randomResources(r)}
				add(step{Do: "PATCH " + name + "/resize", As: "strategic", Body: object{"spec": object{"containers": []any{container}}}})
			case 5:
				add(step{Do: "PATCH resourcequotas/q0", As: "merge", Body: object{"spec": object{"hard": randomHard(r)}}})
			default:
				create(i + 3)
			}
			add(settledQuotas)
		}
		return s
	}))
}

// podOfQuota returns a Pod in random scopes.
func podOfQuota(r *rand.Rand) object {
	pod := podToLimit(r)
	spec := pod["spec"].(object)
	if r.IntN(3) > 0 { // what quotas require
		for _, list := range []string{"containers", "initContainers"} {
			containers, _ := spec[list].([]any)
			for _, container := range containers {
				for _, field := range []string{"requests", "limits"} {
					for _, name := range []string{"cpu", "memory"} {
						resources, _ := container.(object)["resources"].(object)
						if resources == nil {
							resources = object{}
							container.(object)["resources"] = resources
						}
						amount := 1 + r.IntN(3)
						if field == "limits" {
							amount += 3
						}
						put(resources, field, name, amountOf(r, name, amount))
					}
				}
			}
		}
	}
	if r.IntN(3) == 0 {
		spec["priorityClassName"] = pick(r, classes)
	}
	if r.IntN(4) == 0 {
		spec["activeDeadlineSeconds"] = 1 + r.IntN(1000)
	}
	if r.IntN(4) == 0 {
		spec["affinity"] = randomAffinity(r)
	}
	return pod
}

// classes are names of priority classes. None of them exists, because neither side
// looks them up.
var classes = []string{"high", "low", "none"}

// randomAffinity returns an affinity that names other Namespaces or not.
func randomAffinity(r *rand.Rand) object {
	term := object{"topologyKey": "zone", "labelSelector": object{}}
	switch r.IntN(4) {
	case 0:
		term["namespaces"] = []any{"other"}
	case 1:
		term["namespaceSelector"] = object{}
	case 2:
		term["namespaces"] = []any{}
	}
	field, terms := "requiredDuringSchedulingIgnoredDuringExecution", []any{term}
	if r.IntN(2) == 0 {
		field, terms = "preferredDuringSchedulingIgnoredDuringExecution", []any{object{"weight": 1, "podAffinityTerm": term}}
	}
	return object{pick(r, []string{"podAffinity", "podAntiAffinity"}): object{field: terms}}
}

// randomQuota returns a quota, mostly a valid one.
func randomQuota(r *rand.Rand, name string) object {
	spec := object{"hard": randomHard(r)}
	switch r.IntN(4) {
	case 0:
		spec["scopes"] = randomScopes(r)
		delete(spec["hard"].(object), "ephemeral-storage")
	case 1:
		var expressions []any
		for _, scope := range randomScopes(r) {
			expression := object{"scopeName": scope, "operator": "Exists"}
			if scope == "PriorityClass" {
				operator := pick(r, []string{"In", "NotIn", "Exists", "DoesNotExist"})
				expression["operator"] = operator
				if operator == "In" || operator == "NotIn" {
					expression["values"] = pick(r, [][]any{{"high"}, {"low", "high"}, {"other"}})
				}
			}
			expressions = append(expressions, expression)
		}
		spec["scopeSelector"] = object{"matchExpressions": expressions}
	}
	return object{"metadata": object{"name": name}, "spec": spec}
}

func randomScopes(r *rand.Rand) []any {
	scopes := []any{
		pick(r, []any{"Terminating", "NotTerminating", "BestEffort", "NotBestEffort"}),
		pick(r, []any{"PriorityClass", "CrossNamespacePodAffinity", "PriorityClass"}),
	}
	r.Shuffle(2, func(i, j int) { scopes[i], scopes[j] = scopes[j], scopes[i] })
	return scopes[:1+r.IntN(2)]
}

// randomHard returns the limits of a few resources, so that some Pods fit and others
// do not.
func randomHard(r *rand.Rand) object {
	hard := object{}
	for range 1 + r.IntN(4) {
		name := pick(r, []string{
			"pods", "pods", "count/pods", "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory",
			"ephemeral-storage", "requests.ephemeral-storage", "limits.ephemeral-storage", "hugepages-2Mi", "requests.hugepages-2Mi", "requests.example.com/gpu", "example.com/gpu",
		})
		amount := r.IntN(20)
		switch name {
		case "pods", "count/pods":
			hard[name] = strconv.Itoa(amount / 2)
		case "cpu", "requests.cpu", "limits.cpu":
			hard[name] = amountOf(r, "cpu", amount)
		case "hugepages-2Mi", "requests.hugepages-2Mi":
			hard[name] = amountOf(r, "hugepages-2Mi", amount)
		case "requests.example.com/gpu", "example.com/gpu":
			hard[name] = amountOf(r, "example.com/gpu", amount)
		default:
			hard[name] = amountOf(r, "memory", amount)
		}
	}
	return hard
}

// postPod creates the Pod p, bound to a node.
var postPod = step{Do: "POST pods", Body: object{"metadata": object{"name": "p"}, "spec": object{"nodeName": "n", "containers": []any{object{"name": "c", "image": "i"}}}}}

// countPod creates on both sides the Pod p and a quota, and waits until this counts it.
func countPod(t *testing.T, limit string) (kube, borough *visit) {
	t.Helper()
	namespace := both.newNamespace()
	kube, borough = both.kube.visit(namespace), both.borough.visit(namespace)
	for _, v := range []*visit{kube, borough} {
		for _, step := range []step{
			makeNamespace,
			postPod,
			{Do: "POST resourcequotas", Body: object{"metadata": object{"name": "q"}, "spec": object{"hard": object{"pods": limit}}}},
		} {
			if a, err := v.do(t.Context(), step); err != nil || a.Code != 201 {
				t.Fatalf("%s: %v: %v", step.Do, a, err)
			}
		}
		awaitUsedPods(t, v, "1")
	}
	return kube, borough
}

// usedPods returns the number of Pods that the quota counts.
func usedPods(t *testing.T, v *visit) any {
	t.Helper()
	a, err := v.do(t.Context(), step{Do: "GET resourcequotas/q"})
	if err != nil {
		t.Fatal(err)
	}
	status, _ := a.field("status").(object)
	used, _ := status["used"].(object)
	return used["pods"]
}

func awaitUsedPods(t *testing.T, v *visit, want string) {
	t.Helper()
	poll.Eventually(t, func() string {
		if got := usedPods(t, v); got != want {
			return fmt.Sprintf("the usage is %v, want %s", got, want)
		}
		return ""
	})
}

// TestGracePeriod checks that Kubernetes no longer counts a Pod after twice its grace
// period, and that Borough does until the Pod is removed.
func TestGracePeriod(t *testing.T) {
	kube, borough := countPod(t, "1")
	for _, v := range []*visit{kube, borough} {
		if _, err := v.do(t.Context(), step{Do: "DELETE pods/p", Body: object{"gracePeriodSeconds": 1}}); err != nil {
			t.Fatal(err)
		}
	}
	awaitUsedPods(t, kube, "0")
	if got := usedPods(t, borough); got != "1" {
		t.Errorf("Borough counts %v Pods", got)
	}
}

// TestRefusedCreates checks that Kubernetes counts creates of a name that exists until its
// controller counts again (kubernetes#61530), and that Borough never does.
func TestRefusedCreates(t *testing.T) {
	kube, borough := countPod(t, "100")
	counted := false
	for range 20 {
		for _, v := range []*visit{kube, borough} {
			if a, err := v.do(t.Context(), postPod); err != nil || a.Code != 409 {
				t.Fatalf("%s: %v: %v", postPod.Do, a, err)
			}
		}
		counted = counted || usedPods(t, kube) != "1"
		if got := usedPods(t, borough); got != "1" {
			t.Fatalf("Borough counts %v Pods", got)
		}
	}
	if !counted {
		t.Error("Kubernetes counts no refused create, so it is no known difference")
	}
	awaitUsedPods(t, kube, "1")
}
