// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Command charts draws the tables of docs/benchmarks.md as bar charts, in SVG.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
)

// charts are drawn from the rows of the document. The file is the name without .svg.
var charts = []chart{
	{file: "readme", title: "Borough and Kubernetes on the same machine", rows: []string{
		"Start to ready, new",
		"Memory, idle",
		"Create Pods, 32 clients",
		"List 2,000 Pods, JSON, p50",
		"Delete an empty Namespace, p50",
		"Delete a Namespace with 2,000 Pods",
		"Delete 300 Namespaces at once",
	}},
	{file: "start", title: "Start, memory and CPU", rows: []string{
		"Start to ready, new",
		"Start to ready, after a crash",
		"Memory, idle",
		"Memory, after the load",
		"CPU per second, idle",
		"CPU, all of it",
	}},
	{file: "create", title: "Create", rows: []string{
		"Create Namespaces, 1 client",
		"Create Namespaces, 32 clients",
		"Create LimitRanges, 1 client",
		"Create LimitRanges, 32 clients",
		"Create Pods, 1 client",
		"Create Pods, 32 clients",
		"Create Pods, 32 clients, p99",
	}},
	{file: "read", title: "Read", rows: []string{
		"Get a Pod, 1 client",
		"Get a Pod, 32 clients",
		"List 2,000 Pods, JSON, p50",
		"List 2,000 Pods, protobuf, p50",
		"List 2,000 Pods, Table, p50",
		"Watch events to 100 watchers",
		"Watch events to 100 watchers, p99",
	}},
	{file: "delete", title: "Delete", rows: []string{
		"Delete an empty Namespace, p50",
		"Delete a Namespace with 2,000 Pods",
		"Delete a Namespace with 10,000 Pods",
		"Delete 300 Namespaces at once",
	}},
	{file: "limitranger", title: "LimitRanger by itself, for each Pod", rows: []string{
		"1 container, 1 LimitRange",
		"1 container, 5 LimitRanges",
		"10 containers, 1 LimitRange",
		"10 containers, 5 LimitRanges",
		"Nothing to set, 1 container, 1 LimitRange",
		"Nothing to set, 10 containers, 5 LimitRanges",
	}},
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("charts: ")
	document := flag.String("document", "docs/benchmarks.md", "the document with the tables")
	out := flag.String("out", "docs/images", "the directory of the charts")
	flag.Parse()
	if err := run(*document, *out); err != nil {
		log.Fatal(err)
	}
}

func run(document, out string) error {
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	rows := parse(string(text))
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, c := range charts {
		selected, err := c.choose(rows)
		if err != nil {
			return fmt.Errorf("%s: %w", document, err)
		}
		if err := os.WriteFile(filepath.Join(out, "benchmarks-"+c.file+".svg"), draw(c.title, selected), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// chart is one drawing.
type chart struct {
	file, title string
	rows        []string
}

// choose returns the rows of a chart.
func (c chart) choose(rows map[string]row) ([]row, error) {
	var chosen []row
	for _, name := range c.rows {
		row, ok := rows[name]
		if !ok {
			return nil, fmt.Errorf("no table has a row %q with both sides, which the chart %s shows", name, c.file)
		}
		chosen = append(chosen, row)
	}
	return chosen, nil
}
