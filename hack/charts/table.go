// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strconv"
	"strings"
)

// row is a row of a table that compares both sides.
type row struct {
	name                string
	kubernetes, borough value
	ratio               string // how many times better Borough is
}

// value is a figure, as it is written and in the unit of its kind.
type value struct {
	text   string
	number float64
}

const header = "| | Kubernetes | Borough | times better | aim |"

// parse returns the rows of all tables of a document that compare both sides, by name.
// Rows without one figure for each side are left out. If a name is used twice, the
// first row counts, which is that of the full run.
func parse(document string) map[string]row {
	rows := map[string]row{}
	inTable := false
	for line := range strings.Lines(document) {
		line = strings.TrimSpace(line)
		switch {
		case line == header:
			inTable = true
			continue
		case !strings.HasPrefix(line, "|"):
			inTable = false
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if !inTable || len(cells) != 5 {
			continue
		}
		r := row{name: strings.TrimSpace(cells[0]), ratio: strings.TrimSpace(cells[3])}
		var ok1, ok2 bool
		r.kubernetes, ok1 = parseValue(cells[1])
		r.borough, ok2 = parseValue(cells[2])
		if _, known := rows[r.name]; ok1 && ok2 && r.ratio != "" && !known {
			rows[r.name] = r
		}
	}
	return rows
}

// figure is a number with a unit.
var figure = regexp.MustCompile(`^([0-9][0-9,]*(?:\.[0-9]+)?) ?(µs|ms|s|/s|KiB|MiB|%)?$`)

// units are the sizes of the units, in seconds or bytes.
var units = map[string]float64{"µs": 1e-6, "ms": 1e-3, "s": 1, "/s": 1, "KiB": 1 << 10, "MiB": 1 << 20, "%": 0.01, "": 1}

func parseValue(cell string) (value, bool) {
	text := strings.TrimSpace(cell)
	match := figure.FindStringSubmatch(text)
	if match == nil {
		return value{}, false
	}
	number, err := strconv.ParseFloat(strings.ReplaceAll(match[1], ",", ""), 64)
	return value{text: text, number: number * units[match[2]]}, err == nil
}
