// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Documented returns the commands that the comment with a name precedes in a file of
// docs.
func Documented(file, name string) (string, error) {
	doc, err := os.ReadFile(filepath.Join(Root, "docs", file))
	if err != nil {
		return "", err
	}
	_, after, found := strings.Cut(string(doc), "<!-- "+name+" -->\n```bash\n")
	commands, _, ended := strings.Cut(after, "```\n")
	if !found || !ended {
		return "", fmt.Errorf("docs/%s has no commands named %s", file, name)
	}
	return commands, nil
}

// UndocumentedChecks returns the checks in the response to /readyz?verbose that the table
// of docs/operations.md lacks.
func UndocumentedChecks(verbose string) ([]string, error) {
	const section = "\n## The checks of readiness\n"
	doc, err := os.ReadFile(filepath.Join(Root, "docs", "operations.md"))
	if err != nil {
		return nil, err
	}
	_, table, found := strings.Cut(string(doc), section)
	if !found {
		return nil, fmt.Errorf("docs/operations.md has no section %q", strings.TrimSpace(section))
	}
	table, _, _ = strings.Cut(table, "\n## ")
	var documented []*regexp.Regexp
	for _, row := range regexp.MustCompile(`(?m)^\| (`+"`.*?)"+` \|`).FindAllStringSubmatch(table, -1) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			pattern := regexp.QuoteMeta(name[1])
			pattern = strings.NewReplacer("/NAME", "/.+", "-N", `-\d+`).Replace(pattern)
			documented = append(documented, regexp.MustCompile("^"+pattern+"$"))
		}
	}
	var missing []string
	for _, check := range regexp.MustCompile(`(?m)^\[.\](\S+)`).FindAllStringSubmatch(verbose, -1) {
		if !slices.ContainsFunc(documented, func(d *regexp.Regexp) bool { return d.MatchString(check[1]) }) {
			missing = append(missing, check[1])
		}
	}
	return missing, nil
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
