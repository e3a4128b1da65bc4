// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const document = `
| | Kubernetes | Borough | times better | aim |
|---|---:|---:|---:|---|
| Start | 3.126 s | 204 ms | 15 | 8: met |
| Create | 1,687 /s | 3,455 /s | 2 |  |
| Memory | 2,650 MiB | 5.47 KiB | 1.4 |  |
| Allocations | 18 | 0 | ∞ | 10: met |
| In rounds | 198, 210, 212 ms | 16.6, 15.0, 18.5 ms | 12, 14, 11 | |
| One side | | 1.06 ms |  |  |
| Start | 1 s | 1 s | 1 | |

| | |
|---|---:|
| By itself | 70,109 /s |
`

func TestParse(t *testing.T) {
	want := map[string]row{
		"Start":       {"Start", value{"3.126 s", 3.126}, value{"204 ms", 0.204}, "15"},
		"Create":      {"Create", value{"1,687 /s", 1687}, value{"3,455 /s", 3455}, "2"},
		"Memory":      {"Memory", value{"2,650 MiB", 2650 << 20}, value{"5.47 KiB", 5601.28}, "1.4"},
		"Allocations": {"Allocations", value{"18", 18}, value{"0", 0}, "∞"},
	}
	if diff := cmp.Diff(want, parse(document), cmp.AllowUnexported(row{}, value{}), cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// TestChoose checks that a row that is not there is an error.
func TestChoose(t *testing.T) {
	_, err := chart{file: "a", rows: []string{"Start", "One side"}}.choose(parse(document))
	if err == nil || !strings.Contains(err.Error(), `"One side"`) {
		t.Errorf("got %v, want an error about the row", err)
	}
}

// TestDraw checks that a drawing is XML, the same each time, that it has the text of the
// rows, and that bars are in proportion.
func TestDraw(t *testing.T) {
	rows := parse(document)
	selected := []row{rows["Start"], rows["Create"], rows["Allocations"], {name: "<&>", ratio: "1"}}
	drawing := draw("Title", selected)
	if !bytes.Equal(drawing, draw("Title", selected)) {
		t.Error("two drawings of the same rows differ")
	}
	lengths, text := parseSVG(t, drawing)
	want := map[string][]string{
		"kubernetes": {"12", "290.0", "141.6", "290.0", "0.0"}, // the first is the legend
		"borough":    {"12", "18.9", "290.0", "0.0", "0.0"},
	}
	if diff := cmp.Diff(want, lengths); diff != "" {
		t.Errorf("lengths of bars (-want +got):\n%s", diff)
	}
	for _, want := range []string{"Title", "Start", "3.126 s", "204 ms", "15×", "∞×", "<&>", "prefers-color-scheme: dark"} {
		if !strings.Contains(text, want) {
			t.Errorf("the drawing has no %q", want)
		}
	}
}

// TestDocument draws the real document: each chart has its rows, and what is written
// fits into the drawing.
func TestDocument(t *testing.T) {
	dir := t.TempDir()
	if err := run("../../docs/benchmarks.md", dir); err != nil {
		t.Fatal(err)
	}
	for _, c := range charts {
		drawing, err := os.ReadFile(filepath.Join(dir, "benchmarks-"+c.file+".svg"))
		if err != nil {
			t.Fatal(err)
		}
		lengths, _ := parseSVG(t, drawing)
		if len(lengths["borough"]) != len(c.rows)+1 || len(lengths["kubernetes"]) != len(c.rows)+1 {
			t.Errorf("%s has the bars %v for %d rows", c.file, lengths, len(c.rows))
		}
		for _, name := range c.rows {
			if 7*len(name) > barsX-margin { // about 7 pixels for each character
				t.Errorf("%s: the row %q is too long", c.file, name)
			}
		}
	}
	if err := run(filepath.Join(dir, "nothing.md"), dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a document: %v", err)
	}
}

// parseSVG returns the lengths of the bars by their class, and all text.
func parseSVG(t *testing.T, drawing []byte) (lengths map[string][]string, text string) {
	t.Helper()
	lengths = map[string][]string{}
	for d := xml.NewDecoder(bytes.NewReader(drawing)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return lengths, text
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, drawing)
		}
		switch token := token.(type) {
		case xml.CharData:
			text += string(token)
		case xml.StartElement:
			attributes := map[string]string{}
			for _, a := range token.Attr {
				attributes[a.Name.Local] = a.Value
			}
			if class := attributes["class"]; token.Name.Local == "rect" && class != "background" {
				if _, err := strconv.ParseFloat(attributes["width"], 64); err != nil {
					t.Errorf("the width of a bar: %v", err)
				}
				lengths[class] = append(lengths[class], attributes["width"])
			}
		}
	}
}
