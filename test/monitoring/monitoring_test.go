// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring tests artifacts/monitoring: the rules for Prometheus and the
// dashboard for Grafana.
package monitoring

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

const monitoring = root + "/artifacts/monitoring/"

// rule is an alert, or the record of an expression.
type rule struct {
	Alert, Record, Expr string
	Labels, Annotations map[string]string
}

// rules returns all rules.
func rules(t *testing.T) []rule {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []rule }
	}
	if err := yaml.Unmarshal(read(t, monitoring+"rules.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	var all []rule
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("there are no rules")
	}
	return all
}

// recorded returns the labels of the metrics that the rules record.
func recorded(t *testing.T, rules []rule) map[string][]string {
	t.Helper()
	recorded := map[string][]string{}
	for _, rule := range rules {
		if rule.Record == "" {
			continue
		}
		expression, err := promql.ParseExpr(rule.Expr)
		if err != nil {
			t.Fatal(err)
		}
		recorded[rule.Record] = []string{}
		if call, ok := expression.(*parser.Call); ok { // histogram_quantile
			expression = call.Args[len(call.Args)-1]
		}
		aggregate, ok := expression.(*parser.AggregateExpr)
		if !ok {
			t.Fatalf("%s: the test knows only records of aggregations", rule.Record)
		}
		for _, label := range aggregate.Grouping {
			if label != "le" {
				recorded[rule.Record] = append(recorded[rule.Record], label)
			}
		}
	}
	return recorded
}

// TestMetrics checks that each metric and label in the rules and in the dashboard
// exists on a real server, controller or etcd.
func TestMetrics(t *testing.T) {
	s := live(t)
	all := rules(t)
	recorded := recorded(t, all)
	for _, rule := range all {
		if err := s.check(rule.Expr, recorded); err != nil {
			t.Errorf("%s%s: %v", rule.Alert, rule.Record, err)
		}
	}
	legend := regexp.MustCompile(`\{\{(\w+)\}\}`)
	for _, panel := range panels(t) {
		for _, target := range panel.Targets {
			if err := s.check(target.Expr, recorded); err != nil {
				t.Errorf("panel %q: %v", panel.Title, err)
				continue
			}
			expression, err := promql.ParseExpr(strings.ReplaceAll(target.Expr, "$__rate_interval", "5m"))
			if err != nil {
				t.Fatal(err)
			}
			for _, label := range legend.FindAllStringSubmatch(target.LegendFormat, -1) {
				if err := s.checkLabels(expression, label[1:], recorded); err != nil {
					t.Errorf("the legend of panel %q: %v", panel.Title, err)
				}
			}
		}
	}
}

// panel is a part of the dashboard.
type panel struct {
	ID          int
	Type, Title string
	Description string
	GridPos     struct{ X, Y, W, H int }
	Datasource  struct{ UID string }
	Targets     []struct{ Expr, LegendFormat string }
}

// panels returns all panels of the dashboard that have content.
func panels(t *testing.T) []panel {
	t.Helper()
	var dashboard struct{ Panels []panel }
	if err := json.Unmarshal(read(t, monitoring+"dashboard.json"), &dashboard); err != nil {
		t.Fatal(err)
	}
	panels := slices.DeleteFunc(dashboard.Panels, func(p panel) bool { return p.Type == "row" })
	if len(panels) == 0 {
		t.Fatal("the dashboard has no panels")
	}
	return panels
}

// TestDashboard checks that panels have what a reader needs, do not overlap, and use
// the data source that the reader selects.
func TestDashboard(t *testing.T) {
	ids := map[int]bool{}
	taken := map[[2]int]string{}
	for _, p := range panels(t) {
		if p.Title == "" || p.Description == "" || len(p.Targets) == 0 || ids[p.ID] || p.Datasource.UID != "${datasource}" {
			t.Errorf("panel %d has no title, description, expression, data source or an ID of its own: %+v", p.ID, p)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panel %q overlaps %q, or the edge", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}

// TestDocumented checks that docs/metrics.md has exactly the alerts and the records,
// and that each alert leads to a section of the documentation.
func TestDocumented(t *testing.T) {
	metrics := string(read(t, root+"/docs/metrics.md"))
	var want, documented []string
	for _, match := range regexp.MustCompile("(?m)^\\| `(Borough\\w+|borough:\\w+:\\w+)` \\|").FindAllStringSubmatch(metrics, -1) {
		documented = append(documented, match[1])
	}
	for _, rule := range rules(t) {
		want = append(want, rule.Alert+rule.Record)
		if rule.Alert == "" {
			continue
		}
		if severity := rule.Labels["severity"]; severity != "critical" && severity != "warning" {
			t.Errorf("%s has the severity %q", rule.Alert, severity)
		}
		if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
			t.Errorf("%s has no summary or no description", rule.Alert)
		}
		target, ok := strings.CutPrefix(rule.Annotations["runbook_url"], "https://github.com/borough-io/borough/blob/main/")
		file, anchor, _ := strings.Cut(target, "#")
		if !ok || !slices.Contains(anchors(t, file), anchor) {
			t.Errorf("%s: runbook_url leads to no section: %q", rule.Alert, rule.Annotations["runbook_url"])
		}
	}
	if !slices.Equal(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(documented))) {
		t.Errorf("the tables in docs/metrics.md have %q, the rules are %q", documented, want)
	}
}

// anchors returns those of the headings of a document.
func anchors(t *testing.T, file string) []string {
	t.Helper()
	var anchors []string
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(read(t, filepath.Join(root, file))), -1) {
		name := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		anchors = append(anchors, strings.ReplaceAll(name, " ", "-"))
	}
	return anchors
}

// TestRules runs promtool, which checks the rules and runs their tests. Each rule has
// one.
func TestRules(t *testing.T) {
	promtool := strings.TrimSpace(run(t, root+"/hack/promtool.sh"))
	run(t, promtool, "check", "rules", "--lint=all", "--lint-fatal", monitoring+"rules.yaml")
	t.Log(run(t, promtool, "test", "rules", "testdata/rules_test.yaml"))
	tests := string(read(t, "testdata/rules_test.yaml"))
	for _, rule := range rules(t) {
		if rule.Alert != "" && strings.Count(tests, "alertname: "+rule.Alert+"\n") < 2 {
			t.Errorf("testdata/rules_test.yaml has less than two tests of %s: one where it fires, one where it does not", rule.Alert)
		}
		if rule.Record != "" && !strings.Contains(tests, "expr: "+rule.Record) {
			t.Errorf("testdata/rules_test.yaml has no test of %s", rule.Record)
		}
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
