// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	corev1 "k8s.io/api/core/v1"
)

// SetDefaults gives every container and init container the requests and limits
// that it lacks and the Set has a default for. It returns what it has set, as in
//
//	LimitRanger plugin set: cpu, memory request for container a; cpu limit for init container b
//
// or nothing if nothing was missing. The Pod shares no memory with the Set.
func (s *Set) SetDefaults(spec *corev1.PodSpec) string {
	// The text is as long as the names of all containers: it is written here,
	// where no allocation is needed unless it is very long, and copied at the end.
	var buffer [1024]byte
	text := buffer[:0]
	for i := range spec.Containers {
		text = s.setDefaultsOf(&spec.Containers[i], "container ", text)
	}
	for i := range spec.InitContainers {
		text = s.setDefaultsOf(&spec.InitContainers[i], "init container ", text)
	}
	return string(text)
}

func (s *Set) setDefaultsOf(c *corev1.Container, kind string, text []byte) []byte {
	text = fill(&c.Resources.Requests, s.defaultRequests, text, " request for ", kind, c.Name)
	return fill(&c.Resources.Limits, s.defaultLimits, text, " limit for ", kind, c.Name)
}

// fill puts the defaults that are missing into list. It appends their names to the
// text, and after them, in the given words, what they were set as.
func fill(list *corev1.ResourceList, defaults []defaultValue, text []byte, words ...string) []byte {
	separator := "; "
	if len(text) == 0 {
		separator = "LimitRanger plugin set: "
	}
	if len(defaults) > 0 && *list == nil {
		*list = make(corev1.ResourceList, len(defaults))
	}
	all, missing := len(*list) == 0, false // where all is missing nothing is looked up
	for i := range defaults {
		d := &defaults[i]
		if !all {
			if _, found := (*list)[d.resource]; found {
				continue
			}
		}
		(*list)[d.resource] = d.quantity.DeepCopy()
		text = append(append(text, separator...), d.resource...)
		separator, missing = ", ", true
	}
	if missing {
		for _, word := range words {
			text = append(text, word...)
		}
	}
	return text
}
