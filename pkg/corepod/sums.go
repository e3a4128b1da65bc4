// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package corepod

import corev1 "k8s.io/api/core/v1"

// MaxInitSums is how many resources of sidecars a Pod may have, each counted once for every
// init container after it that is not a sidecar.
const MaxInitSums = 100_000

// CanBeSummed reports whether the resources of the containers can be added up at a cost that
// is in proportion to the Pod: for each init container that is not a sidecar, the library
// copies those of all sidecars before it.
func CanBeSummed(spec *corev1.PodSpec) bool {
	sums, sidecars := 0, 0
	for i := range spec.InitContainers {
		container := &spec.InitContainers[i]
		if IsSidecar(container) {
			sidecars += len(container.Resources.Requests) + len(container.Resources.Limits)
		} else {
			sums += sidecars
		}
	}
	return sums <= MaxInitSums
}
