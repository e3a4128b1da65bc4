// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"html"
	"strconv"
)

// The layout, in pixels.
const (
	width     = 820
	margin    = 20
	top       = 76 // of the first row, below title and legend
	rowHeight = 46 // two bars and the space to the next row
	barHeight = 15
	barsX     = 330 // where bars begin
	barsWidth = 290 // of the longest bar; its figure is to the right of it
)

// style has the colors for light and dark surroundings. The drawing has a background of
// its own, because an image does not know that of the page.
const style = `
    text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328 }
    .background { fill: #ffffff; stroke: #d1d9e0 }
    .title { font-size: 16px; font-weight: 600 }
    .note, .figure { font-size: 12px; fill: #59636e }
    .ratio { font-weight: 600 }
    .ratio, .right { text-anchor: end }
    .kubernetes { fill: #9aa4af }
    .borough { fill: #1f6feb }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 }
      .background { fill: #0d1117; stroke: #3d444d }
      .note, .figure { fill: #9198a1 }
      .kubernetes { fill: #656c76 }
      .borough { fill: #4493f8 }
    }
  `

// draw draws a row as two bars, which have the same scale. The scale of each row is its
// own, because rows have different units.
func draw(title string, rows []row) []byte {
	height := top + len(rows)*rowHeight + 6
	var b bytes.Buffer
	printf := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="title description">`, width, height, width, height)
	printf(`  <title id="title">%s</title>`, html.EscapeString(title))
	description := "The figures of Kubernetes and Borough:"
	for _, r := range rows {
		description += fmt.Sprintf(" %s: %s, %s.", r.name, r.kubernetes.text, r.borough.text)
	}
	printf(`  <desc id="description">%s</desc>`, html.EscapeString(description))
	printf(`  <style>%s</style>`, style)
	printf(`  <rect class="background" x="0.5" y="0.5" width="%d" height="%d" rx="6"/>`, width-1, height-1)
	printf(`  <text class="title" x="%d" y="32">%s</text>`, margin, html.EscapeString(title))
	printf(`  <rect class="kubernetes" x="%d" y="45" width="12" height="12"/>`, margin)
	printf(`  <text class="note" x="%d" y="56">Kubernetes</text>`, margin+18)
	printf(`  <rect class="borough" x="%d" y="45" width="12" height="12"/>`, margin+100)
	printf(`  <text class="note" x="%d" y="56">Borough</text>`, margin+118)
	printf(`  <text class="note" x="%d" y="56">Each row has its own scale. Shorter is better, for /s longer.</text>`, barsX)
	printf(`  <text class="note right" x="%d" y="56">times better</text>`, width-margin)
	for i, r := range rows {
		y := top + i*rowHeight
		printf(`  <text x="%d" y="%d">%s</text>`, margin, y+barHeight+5, html.EscapeString(r.name))
		longest := max(r.kubernetes.number, r.borough.number)
		bar(&b, "kubernetes", r.kubernetes, longest, y)
		bar(&b, "borough", r.borough, longest, y+barHeight+2)
		printf(`  <text class="ratio" x="%d" y="%d">%s×</text>`, width-margin, y+barHeight+5, html.EscapeString(r.ratio))
	}
	printf(`</svg>`)
	return b.Bytes()
}

// bar draws a figure, with a length in proportion to the longest of its row.
func bar(b *bytes.Buffer, class string, v value, longest float64, y int) {
	length := 0.0
	if longest > 0 {
		length = barsWidth * v.number / longest
	}
	if v.number > 0 {
		length = max(length, 1) // visible
	}
	fmt.Fprintf(b, "  <rect class=%q x=\"%d\" y=\"%d\" width=\"%s\" height=\"%d\"/>\n", class, barsX, y, pixels(length), barHeight)
	fmt.Fprintf(b, "  <text class=\"figure\" x=\"%s\" y=\"%d\">%s</text>\n", pixels(barsX+length+6), y+barHeight-3, html.EscapeString(v.text))
}

// pixels formats a length with a tenth of a pixel.
func pixels(length float64) string { return strconv.FormatFloat(length, 'f', 1, 64) }
