// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"math/rand/v2"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

var podType = reflect.TypeFor[corev1.Pod]()

// pods are known Pods on which generated requests are based.
type pods struct {
	*mutator
	all   []object
	valid []object // with many fields
}

// newPods returns the Pods of the corpus and those of the directory bases.
func newPods(t *testing.T, r *rand.Rand) *pods {
	p := &pods{mutator: newMutator(r)}
	for _, c := range readCorpus(t) {
		for _, pod := range []object{c.Pod, c.Old} {
			p.learn(pod, podType)
		}
		p.all = append(p.all, c.Pod)
	}
	for _, s := range readScenarios(t, "testdata/bases/*.yaml") {
		pod := complete(s.Steps[0].Body.(object), false)
		p.learn(pod, podType)
		p.valid = append(p.valid, pod)
	}
	return p
}

// pod returns a Pod. If it is a valid one, a few slots are changed.
func (p *pods) pod() object {
	if p.IntN(5) == 0 {
		return clone(pick(p.Rand, p.all))
	}
	return clone(pick(p.Rand, p.valid))
}

// TestPods creates Pods.
func TestPods(t *testing.T) {
	p := newPods(t, newRand(t))
	checkGroups(t, few, generate(t, func(r *rand.Rand) scenario {
		p.Rand = r
		pod := p.pod()
		for range pick(r, []int{1, 1, 1, 2, 3}) {
			p.mutate(pod, podType, "/spec", "/metadata/annotations", "/metadata/labels", "/metadata/name", "/metadata/generateName")
		}
		if r.IntN(10) == 0 {
			p.mutate(pod, podType, "/metadata", "/status")
		}
		query := pick(r, []string{"", "", "", "", "", "?fieldValidation=Strict", "?fieldValidation=Ignore", "?dryRun=All", "?fieldManager=x"})
		return scenario{Steps: []step{{Do: "POST pods" + query, Body: pod}, {Do: "GET pods/p"}}}
	}))
}

// TestPodChanges changes stored Pods.
func TestPodChanges(t *testing.T) {
	p := newPods(t, newRand(t))
	checkGroups(t, few, generate(t, func(r *rand.Rand) scenario {
		p.Rand = r
		pod := clone(pick(r, p.valid))
		s := scenario{Steps: []step{{Do: "POST pods", Body: clone(pod)}}}
		for range 1 + r.IntN(2) {
			// Most of these fields are mutable.
			pointers := pick(r, [][]string{
				{"/spec", "/metadata"},
				{"/metadata/labels", "/metadata/annotations", "/metadata/finalizers", "/metadata/ownerReferences"},
				{"/spec/containers/0/image", "/spec/initContainers/0/image", "/spec/activeDeadlineSeconds", "/spec/tolerations", "/spec/schedulingGates", "/spec/terminationGracePeriodSeconds"},
				{"/spec/schedulingGates", "/spec/nodeSelector", "/spec/affinity"},
			})
			s.Steps = append(s.Steps, changeOf(p.mutator, "pods/p", clone(pod), podType, pointers...), step{Do: "GET pods/p"})
		}
		return s
	}))
}

// TestPodSubresources changes Pods through their subresources.
func TestPodSubresources(t *testing.T) {
	p := newPods(t, newRand(t))
	statuses := p.statuses(t)
	checkGroups(t, few, generate(t, func(r *rand.Rand) scenario {
		p.Rand = r
		pod := clone(pick(r, p.valid))
		s := scenario{Steps: []step{{Do: "POST pods", Body: clone(pod)}}}
		for range 1 + r.IntN(3) {
			switch r.IntN(5) {
			case 0:
				s.Steps = append(s.Steps, p.binding())
			case 1:
				s.Steps = append(s.Steps, changeOf(p.mutator, "pods/p/resize", clone(pod), podType, "/spec/containers/0/resources", "/spec/containers/1/resources", "/spec/initContainers", "/spec/resources", "/spec/containers/0/resizePolicy"))
			case 2:
				changed := clone(pod)
				changed["spec"].(object)["ephemeralContainers"] = []any{object{"name": "debug", "image": "i"}}
				s.Steps = append(s.Steps, changeOf(p.mutator, "pods/p/ephemeralcontainers", changed, podType, "/spec/ephemeralContainers"))
			default:
				changed := clone(pod)
				changed["status"] = clone(pick(r, statuses))
				s.Steps = append(s.Steps, changeOf(p.mutator, "pods/p/status", changed, podType, "/status", "/status", "/metadata/labels"))
			}
			s.Steps = append(s.Steps, step{Do: "GET pods/p"})
		}
		return s
	}))
}

// statuses returns the statuses in the corpus.
func (p *pods) statuses(t *testing.T) (statuses []any) {
	for _, c := range readCorpus(t) {
		if status, ok := c.Pod["status"].(object); ok {
			statuses = append(statuses, status)
		}
	}
	return append(statuses, object{})
}

// binding returns a request that in most cases binds the Pod to a node.
func (p *pods) binding() step {
	binding := object{"metadata": object{"name": "p"}, "target": object{"kind": "Node", "name": "n"}}
	for range p.IntN(2) {
		p.mutate(binding, reflect.TypeFor[corev1.Binding](), "/metadata/labels", "/metadata/annotations", "/metadata/uid", "/metadata/resourceVersion", "/metadata/name", "/target")
	}
	return step{Do: "POST pods/p/binding" + pick(p.Rand, []string{"", "", "?dryRun=All"}), Body: binding}
}

// TestBases checks that the base Pods of generated requests are valid, and that
// Kubernetes keeps all their fields.
func TestBases(t *testing.T) {
	for _, s := range readScenarios(t, "testdata/bases/*.yaml") {
		pod := complete(s.Steps[0].Body.(object), false)
		visit := both.kube.visit(both.newNamespace())
		for _, step := range []step{makeNamespace, {Do: "POST pods?fieldValidation=Strict", Body: pod}} {
			a, err := visit.do(t.Context(), step)
			if err != nil {
				t.Fatal(err)
			}
			if a.Code != 201 {
				t.Errorf("%s: %s: %v", s.Name, step.Do, a)
			}
		}
	}
}
