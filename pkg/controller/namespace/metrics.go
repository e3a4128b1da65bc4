// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-base/metrics"
)

const metricsSubsystem = "borough_namespace_controller"

// controllerMetrics are the controller's own metrics. The metrics provider that
// the process sets for work queues has those of its queue, with the name
// "namespace".
type controllerMetrics struct {
	purged              *metrics.CounterVec
	terminationDuration *metrics.Histogram
}

func newControllerMetrics(terminations *terminations, api *availability, registry metrics.KubeRegistry) *controllerMetrics {
	m := &controllerMetrics{
		purged: metrics.NewCounterVec(&metrics.CounterOpts{
			Subsystem:      metricsSubsystem,
			Name:           "purged_objects_total",
			Help:           "Objects that are gone because their namespace was deleted, except those that a failed purge has deleted.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"group", "resource"}),
		terminationDuration: metrics.NewHistogram(&metrics.HistogramOpts{
			Subsystem:      metricsSubsystem,
			Name:           "termination_duration_seconds",
			Help:           "Time from the deletion of a namespace until it was gone.",
			Buckets:        metrics.ExponentialBuckets(0.005, 2, 20),
			StabilityLevel: metrics.ALPHA,
		}),
	}
	registry.MustRegister(m.purged, m.terminationDuration)
	registry.CustomMustRegister(&stateCollector{terminations: terminations, api: api})
	return m
}

func (m *controllerMetrics) countPurged(gvr schema.GroupVersionResource, count int) {
	m.purged.WithLabelValues(gvr.Group, gvr.Resource).Add(float64(count))
}

var (
	terminatingDesc = metrics.NewDesc(metricsSubsystem+"_terminating_namespaces",
		"Namespaces that are being deleted.", nil, nil, metrics.ALPHA, "")
	stuckDesc = metrics.NewDesc(metricsSubsystem+"_stuck_namespaces",
		"Namespaces that are being deleted and wait: for their content, for others' finalizers, or for the next attempt after a failure.",
		[]string{"reason"}, nil, metrics.ALPHA, "")
	oldestDesc = metrics.NewDesc(metricsSubsystem+"_oldest_termination_age_seconds",
		"Time since the deletion of the namespace that has been terminating for longest, 0 if there is none.", nil, nil, metrics.ALPHA, "")
	apiUnavailableDesc = metrics.NewDesc(metricsSubsystem+"_api_unavailable_seconds",
		"Time for which all lists and watches of namespaces have failed, 0 if the last one has succeeded.", nil, nil, metrics.ALPHA, "")
)

// stateCollector reads the state of the controller when it is asked to.
type stateCollector struct {
	metrics.BaseStableCollector
	terminations *terminations
	api          *availability
}

func (c *stateCollector) DescribeWithStability(ch chan<- *metrics.Desc) {
	ch <- terminatingDesc
	ch <- stuckDesc
	ch <- oldestDesc
	ch <- apiUnavailableDesc
}

func (c *stateCollector) CollectWithStability(ch chan<- metrics.Metric) {
	total, stuck, oldest := c.terminations.account()
	ch <- metrics.NewLazyConstMetric(terminatingDesc, metrics.GaugeValue, float64(total))
	for _, reason := range stuckReasons {
		ch <- metrics.NewLazyConstMetric(stuckDesc, metrics.GaugeValue, float64(stuck[reason]), reason)
	}
	ch <- metrics.NewLazyConstMetric(oldestDesc, metrics.GaugeValue, oldest.Seconds())
	ch <- metrics.NewLazyConstMetric(apiUnavailableDesc, metrics.GaugeValue, c.api.failing().Seconds())
}
