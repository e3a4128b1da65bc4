// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// mismatch is a step whose responses differ.
type mismatch struct {
	step int
	do   string
	// kube and borough are the lines that are only in the response of that side.
	kube, borough []string
	// causes is the number of causes in the responses.
	causes int
	// exceedsQuota reports that only Borough refused the request, for a quota.
	exceedsQuota bool
}

func (m *mismatch) String() string {
	return fmt.Sprintf("step %d, %s:\n  - %s\n  + %s", m.step+1, m.do,
		strings.Join(m.kube, "\n  - "), strings.Join(m.borough, "\n  + "))
}

// compare returns the mismatch of the responses after the known differences are
// folded, or nil.
func compare(x *exchange) *mismatch {
	m := differ(x)
	for _, difference := range knownDifferences {
		if m == nil {
			break
		}
		if difference.fold == nil {
			continue
		}
		difference.fold(x)
		folded := differ(x)
		if folded == nil || folded.String() != m.String() {
			difference.folded.Add(1)
		}
		if folded == nil || !difference.unreadable {
			m = folded
		}
	}
	return m
}

func differ(x *exchange) *mismatch {
	kube, borough := x.kube.lines(), x.borough.lines()
	if slices.Equal(kube, borough) {
		return nil
	}
	m := &mismatch{do: x.step.Do}
	for _, line := range slices.Concat(kube, borough) {
		if strings.HasPrefix(line, "cause ") {
			m.causes++
		}
	}
	m.kube, m.borough = without(kube, borough), without(borough, kube)
	if len(m.kube)+len(m.borough) == 0 {
		m.kube, m.borough = kube, borough // they differ only in order or repetition
	}
	return m
}

// without returns the lines that are not among others.
func without(lines, others []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return slices.Contains(others, line) })
}

var digits = regexp.MustCompile(`\d+`)

// isPartOf reports whether the mismatch of a reduced scenario has only lines of
// the other, ignoring indexes, and messages because they repeat the causes.
func (m *mismatch) isPartOf(other *mismatch) bool {
	part := func(lines, of []string) bool {
		return !slices.ContainsFunc(lines, func(line string) bool {
			return !strings.HasPrefix(line, ".message") && !slices.ContainsFunc(of, func(other string) bool {
				return digits.ReplaceAllString(line, "") == digits.ReplaceAllString(other, "")
			})
		})
	}
	return m.do == other.do && m.causes <= other.causes && part(m.kube, other.kube) && part(m.borough, other.borough)
}

// lines returns the response as one line per value. A cause is one value.
func (a *answer) lines() []string {
	lines := []string{fmt.Sprintf("code %d", a.Code)}
	for _, warning := range a.Warnings {
		lines = append(lines, "warning "+warning)
	}
	return appendLines(lines, "", a.Body)
}

func appendLines(lines []string, path string, value any) []string {
	switch value := value.(type) {
	case []any:
		if len(value) == 0 {
			return append(lines, path+" []")
		}
		for i, item := range value {
			lines = appendLines(lines, fmt.Sprintf("%s[%d]", path, i), item)
		}
		return lines
	case map[string]any:
		if strings.HasPrefix(path, ".details.causes[") {
			return append(lines, fmt.Sprintf("cause %v: %v (%v)", value["field"], value["message"], value["reason"]))
		}
		if len(value) == 0 {
			return append(lines, path+" {}")
		}
		keys := make([]string, 0, len(value))
		for key := range value {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			lines = appendLines(lines, path+"."+key, value[key])
		}
		return lines
	}
	return append(lines, fmt.Sprintf("%s %#v", path, value))
}
