// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package podsource

import (
	"k8s.io/component-base/metrics"

	"github.com/borough-io/borough/pkg/source"
)

const metricsSubsystem = "borough_source"

// Metrics are the metrics of all sources of a process.
type Metrics struct {
	refused, unreadable *metrics.GaugeVec
}

// NewMetrics returns metrics that are registered with the registry.
func NewMetrics(registry metrics.KubeRegistry) *Metrics {
	m := &Metrics{
		refused: metrics.NewGaugeVec(&metrics.GaugeOpts{
			Subsystem:      metricsSubsystem,
			Name:           "refused_pods",
			Help:           "Pods of a source that cannot be used, or that the server has refused.",
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

func (m *Metrics) set(identity source.Identity, problems []source.Problem) {
	refused := 0
	for _, problem := range problems {
		if problem.Pod != "" {
			refused++
		}
	}
	m.refused.WithLabelValues(identity.String()).Set(float64(refused))
	m.unreadable.WithLabelValues(identity.String()).Set(float64(len(problems) - refused))
}
