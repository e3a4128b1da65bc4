// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// WriteText writes the findings as text: one line for each, and the fix on the next
// line for a fault or a warning.
func WriteText(w io.Writer, findings []Finding) error {
	words := map[Status]string{OK: "ok", Warning: "warn", Fault: "FAULT", Skipped: "skip"}
	var text strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&text, "%-5s  %s: %s\n", words[f.Status], f.Check, f.Message)
		if f.Fix != "" {
			fmt.Fprintf(&text, "       fix: %s\n", f.Fix)
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// WriteJSON writes the findings as JSON: {"findings": [...]}.
func WriteJSON(w io.Writer, findings []Finding) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(struct {
		Findings []Finding `json:"findings"`
	}{findings})
}
