// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package podsource

import (
	"sync"

	"k8s.io/component-base/metrics"

	"github.com/borough-io/borough/pkg/source"
)

const metricsSubsystem = "borough_source"

// Metrics are the metrics of all sources of a process.
type Metrics struct {
	refused, unreadable *metrics.GaugeVec

	mu     sync.Mutex
	counts map[source.Identity]counts
}

// counts are the values of the metrics for a source.
type counts struct{ refused, unreadable int }

// NewMetrics returns metrics that are registered with the registry.
func NewMetrics(registry metrics.KubeRegistry) *Metrics {
	m := &Metrics{
		counts: map[source.Identity]counts{},
		refused: metrics.NewGaugeVec(&metrics.GaugeOpts{
			Subsystem:      metricsSubsystem,
			Name:           "refused_pods",
			Help:           "Pods of a source that cannot be used, that the server has refused, or whose write or delete keeps failing.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"source"}),
		unreadable: metrics.NewGaugeVec(&metrics.GaugeOpts{
			Subsystem:      metricsSubsystem,
			Name:           "unreadable_files",
			Help:           "Files of a source that cannot be read, or 1 if the whole source cannot.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"source"}),
	}
	registry.MustRegister(m.refused, m.unreadable)
	return m
}

// set sets the metrics to the problems of a source.
func (m *Metrics) set(identity source.Identity, problems []source.Problem) {
	var own counts
	for _, problem := range problems {
		if problem.Pod != "" {
			own.refused++
		} else {
			own.unreadable++
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts[identity] = own
	m.update(identity.String())
}

// remove removes the metrics of a source whose problems are not known.
func (m *Metrics) remove(identity source.Identity) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.counts, identity)
	m.update(identity.String())
}

// update computes the metrics of all sources that have a label: URLs that differ in their
// query only. The lock is held.
func (m *Metrics) update(label string) {
	var all counts
	exists := false
	for identity, n := range m.counts {
		if identity.String() == label {
			exists = true
			all.refused += n.refused
			all.unreadable += n.unreadable
		}
	}
	if !exists {
		m.refused.DeleteLabelValues(label)
		m.unreadable.DeleteLabelValues(label)
		return
	}
	m.refused.WithLabelValues(label).Set(float64(all.refused))
	m.unreadable.WithLabelValues(label).Set(float64(all.unreadable))
}
