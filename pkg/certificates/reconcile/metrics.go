// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import "k8s.io/component-base/metrics"

// failingGauge is set by the loop. A process has one at most.
var failingGauge = metrics.NewGauge(&metrics.GaugeOpts{
	Namespace:      "borough",
	Subsystem:      "certificates",
	Name:           "failing",
	Help:           "1 while certificates that the process renews cannot be brought up to date, otherwise 0.",
	StabilityLevel: metrics.ALPHA,
})

// RegisterMetrics registers the metric of the loop. A process that renews no certificates has
// it, too.
func RegisterMetrics(mustRegister func(...metrics.Registerable)) { mustRegister(failingGauge) }
