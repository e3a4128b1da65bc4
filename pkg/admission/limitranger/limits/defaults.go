// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// SetDefaults gives every container and init container the requests and limits
// that it lacks and the Set has a default for. It returns what it has set, as in
//
//	cpu, memory request for container a; cpu limit for init container b
//
// or nothing if nothing was missing.
func (s *Set) SetDefaults(spec *corev1.PodSpec) string {
	var done record
	setIn := func(containers []corev1.Container, kind string) {
		for i := range containers {
			c := &containers[i]
			done.fill(&c.Resources.Requests, s.defaultRequests, " request for ", kind, c.Name)
			done.fill(&c.Resources.Limits, s.defaultLimits, " limit for ", kind, c.Name)
		}
	}
	setIn(spec.Containers, "container ")
	setIn(spec.InitContainers, "init container ")
	return done.text.String()
}

// record tells what was set.
type record struct {
	text strings.Builder
}

// fill puts the defaults that are missing into list. The record names them, and
// then says, in the given words, what they were set as.
func (r *record) fill(list *corev1.ResourceList, defaults []defaultValue, words ...string) {
	separator := "; "
	if r.text.Len() == 0 {
		separator = ""
	}
	missing := false
	for i := range defaults {
		d := &defaults[i]
		if _, found := (*list)[d.resource]; found {
			continue
		}
		if *list == nil {
			*list = make(corev1.ResourceList, len(defaults))
		}
		(*list)[d.resource] = d.quantity.DeepCopy()
		r.text.WriteString(separator)
		r.text.WriteString(string(d.resource))
		separator, missing = ", ", true
	}
	if missing {
		for _, word := range words {
			r.text.WriteString(word)
		}
	}
}
