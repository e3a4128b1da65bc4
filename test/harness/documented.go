// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// Documented returns the code block that the comment with a name precedes in a file of
// docs.
func Documented(file, name string) (string, error) {
	doc, err := os.ReadFile(filepath.Join(Root, "docs", file))
	if err != nil {
		return "", err
	}
	_, after, found := strings.Cut(string(doc), "<!-- "+name+" -->\n```")
	_, after, _ = strings.Cut(after, "\n") // the language
	block, _, ended := strings.Cut(after, "```\n")
	if !found || !ended {
		return "", fmt.Errorf("docs/%s has no code block named %s", file, name)
	}
	return block, nil
}

// UndocumentedChecks returns the checks in the responses to /readyz?verbose and to
// /livez?verbose that docs/operations.md lacks.
func UndocumentedChecks(readyz, livez string) ([]string, error) {
	const section = "\n## The checks of readiness\n"
	doc, err := os.ReadFile(filepath.Join(Root, "docs", "operations.md"))
	if err != nil {
		return nil, err
	}
	_, text, found := strings.Cut(string(doc), section)
	if !found {
		return nil, fmt.Errorf("docs/operations.md has no section %q", strings.TrimSpace(section))
	}
	text, _, _ = strings.Cut(text, "\n## ")
	live := regexp.MustCompile("`/livez` has only .*").FindString(text)
	var rows []string
	for _, row := range regexp.MustCompile(`(?m)^\| (`+"`.*?)"+` \|`).FindAllStringSubmatch(text, -1) {
		rows = append(rows, row[1])
	}
	return append(otherChecks(readyz, strings.Join(rows, " ")), otherChecks(livez, live)...), nil
}

// otherChecks returns the checks in a response that are not among the names in a text.
func otherChecks(verbose, text string) (others []string) {
	var names []string
	for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(text, -1) {
		names = append(names, strings.NewReplacer("/NAME", "/.+", "-N", `-\d+`).Replace(regexp.QuoteMeta(name[1])))
	}
	named := regexp.MustCompile("^(" + strings.Join(names, "|") + ")$")
	for _, check := range regexp.MustCompile(`(?m)^\[.\](\S+)`).FindAllStringSubmatch(verbose, -1) {
		if !named.MatchString(check[1]) {
			others = append(others, check[1])
		}
	}
	return others
}

// RunScript runs commands in a directory with additional variables, until the first
// that fails. Jobs in the background end with the script.
func RunScript(dir, commands string, variables ...string) error {
	cmd := exec.Command("bash", "-o", "errexit", "-o", "nounset", "-c", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"+commands)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), variables...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}
