// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// metricName is the label that has the name of a metric.
const metricName = "__name__"

var promql = parser.NewParser(parser.Options{})

// series are those that each job exports, by the name of the metric.
type series map[string]map[string][]labels.Labels

// parseMetrics adds what a job exports, in the text format.
func (s series) parseMetrics(job, text string) error {
	s[job] = map[string][]labels.Labels{"up": {labels.EmptyLabels()}}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		one, err := promql.ParseMetric(line[:strings.LastIndex(line, " ")])
		if err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
		name := one.Get(metricName)
		s[job][name] = append(s[job][name], one)
	}
	return nil
}

// targetLabels are those that Prometheus adds to each series of a job.
var targetLabels = []string{"job", "instance"}

// onlyInFaults are labels with values that the series of a healthy server do not have.
var onlyInFaults = []string{"code"}

// check returns what is wrong with an expression: metrics and labels that no job
// exports, and selectors without a job. Of recorded metrics it has the labels.
func (s series) check(expression string, recorded map[string][]string) error {
	expression = strings.ReplaceAll(expression, "$__rate_interval", "5m")
	parsed, err := promql.ParseExpr(expression)
	if err != nil {
		return err
	}
	var errs []error
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.VectorSelector:
			_, err := s.labelsOf(node, recorded)
			errs = append(errs, err)
		case *parser.AggregateExpr:
			errs = append(errs, s.checkLabels(node, node.Grouping, recorded))
		}
		return nil
	})
	return errors.Join(errs...)
}

// checkLabels returns an error for each label that no selector in an expression has.
func (s series) checkLabels(node parser.Node, names []string, recorded map[string][]string) error {
	known := slices.Clone(targetLabels)
	parser.Inspect(node, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			names, _ := s.labelsOf(selector, recorded)
			known = append(known, names...)
		}
		return nil
	})
	for _, name := range names {
		if !slices.Contains(known, name) {
			return fmt.Errorf("nothing in %s has the label %s", node, name)
		}
	}
	return nil
}

// labelsOf returns the names of the labels of what is selected.
func (s series) labelsOf(selector *parser.VectorSelector, recorded map[string][]string) ([]string, error) {
	if names, ok := recorded[selector.Name]; ok {
		for _, matcher := range selector.LabelMatchers {
			if matcher.Name != metricName && !slices.Contains(names, matcher.Name) {
				return nil, fmt.Errorf("%s: it is recorded without the label %s", selector, matcher.Name)
			}
		}
		return names, nil
	}
	var jobs *labels.Matcher
	for _, matcher := range selector.LabelMatchers {
		if matcher.Name == "job" && (matcher.Type == labels.MatchEqual || matcher.Type == labels.MatchRegexp) {
			jobs = matcher
		}
	}
	if jobs == nil {
		return nil, fmt.Errorf("%s: it selects no job", selector)
	}
	var names []string
	matched := 0
	for job, metrics := range s {
		if !jobs.Matches(job) {
			continue
		}
		matched++
		found := false
		for _, one := range metrics[selector.Name] {
			if selects(selector, one) {
				found = true
				one.Range(func(l labels.Label) { names = append(names, l.Name) })
			}
		}
		if !found {
			return nil, fmt.Errorf("%s: the job %s has no such series", selector, job)
		}
	}
	if matched == 0 {
		return nil, fmt.Errorf("%s: there is no such job", selector)
	}
	return names, nil
}

// selects reports whether a series has the labels of a selector, with their values
// unless only faults have these.
func selects(selector *parser.VectorSelector, one labels.Labels) bool {
	for _, matcher := range selector.LabelMatchers {
		switch {
		case matcher.Name == metricName || matcher.Name == "job":
		case !one.Has(matcher.Name):
			return false
		case !slices.Contains(onlyInFaults, matcher.Name) && !matcher.Matches(one.Get(matcher.Name)):
			return false
		}
	}
	return true
}

// TestCheck checks that mistakes in expressions are found.
func TestCheck(t *testing.T) {
	s := series{}
	err := s.parseMetrics("a", "# TYPE m counter\nm{code=\"200\",verb=\"GET\"} 1\nh_bucket{le=\"1\"} 2 \n")
	if err != nil {
		t.Fatal(err)
	}
	recorded := map[string][]string{"r:m": {"code"}}
	for expression, want := range map[string]string{
		`sum by (verb) (rate(m{job="a"}[5m]))`:                                             "",
		`sum by (instance) (m{job=~"a|b",code="507"})`:                                     "",
		`histogram_quantile(0.9, sum by (le) (rate(h_bucket{job="a"}[$__rate_interval])))`: "",
		`absent(up{job="a"} == 1)`:                                                         "",
		`sum(r:m{code="429"}) / sum(r:m)`:                                                  "",
		`sum by (verb) (rate(m{job="a"}[5m])`:                                              "unclosed",
		`n{job="a"}`:                                                                       "no such series",
		`m{job="a",verb="LIST"}`:                                                           "no such series",
		`m{job="a",resource!=""}`:                                                          "no such series",
		`m{job="b"}`:                                                                       "no such job",
		`m`:                                                                                "selects no job",
		`sum by (resource) (m{job="a"})`:                                                   "the label resource",
		`r:m{verb="GET"}`:                                                                  "without the label verb",
		`sum by (verb) (r:m)`:                                                              "the label verb",
	} {
		err := s.check(expression, recorded)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", expression, err, want)
		}
	}
}
