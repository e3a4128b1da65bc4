// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/borough-io/borough/pkg/corepod"
)

// maxDefaults is the maximum number of requests and limits that are set in a Pod.
const maxDefaults = 10_000

// SetDefaults sets the missing requests and limits of every container and init
// container for which the Set has a default. It returns a list of them, as in
//
//	LimitRanger plugin set: cpu, memory request for container a; cpu limit for init container b
//
// or an empty string if none was missing. The Pod shares no memory with the Set. If
// more than 10,000 are missing it returns an error, and the Pod must not be used.
func (s *Set) SetDefaults(spec *corev1.PodSpec) (string, error) {
	// Build the text in a buffer on the stack, to allocate only once unless the text
	// is very long.
	var buffer [1024]byte
	text, left := buffer[:0], maxDefaults
	for kind, c := range corepod.ContainersWithResources(spec) {
		text = s.fillContainer(c, nil, kind, text, &left)
	}
	if left < 0 {
		return "", s.tooManyDefaults(spec)
	}
	return string(text), nil
}

func (s *Set) tooManyDefaults(spec *corev1.PodSpec) error {
	return fmt.Errorf("the Pod has %d containers and the LimitRanges of its namespace have %d defaults for each: at most %d are set in a Pod",
		containerCount(spec), len(s.defaultRequests)+len(s.defaultLimits), maxDefaults)
}

// fillContainer sets the missing defaults of one container. If before, the container
// before a resize, is not nil, it sets only those of resources whose amounts have
// changed. It returns the text with the defaults appended, and subtracts their number
// from left.
func (s *Set) fillContainer(c, before *corev1.Container, kind corepod.ContainerType, text []byte, left *int) []byte {
	requests, limits := s.defaultRequests, s.defaultLimits
	if before != nil {
		requests, limits = resizedOf(requests, c, before), resizedOf(limits, c, before)
	}
	text = fill(&c.Resources.Requests, requests, text, left, " request for ", kind.String(), " ", c.Name)
	return fill(&c.Resources.Limits, limits, text, left, " limit for ", kind.String(), " ", c.Name)
}

// fill sets the missing defaults in list. It appends their names and then the words to
// the text. If more defaults are missing than left, it stops and sets left to a
// negative number.
func fill(list *corev1.ResourceList, defaults []defaultValue, text []byte, left *int, words ...string) []byte {
	if *left < 0 {
		return text
	}
	separator := "; "
	if len(text) == 0 {
		separator = "LimitRanger plugin set: "
	}
	if len(defaults) > 0 && *list == nil {
		*list = make(corev1.ResourceList, min(len(defaults), *left))
	}
	all, missing := len(*list) == 0, false // if all are missing, skip the lookups
	for i := range defaults {
		d := &defaults[i]
		if !all {
			if _, found := (*list)[d.resource]; found {
				continue
			}
		}
		if *left--; *left < 0 {
			return text
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
