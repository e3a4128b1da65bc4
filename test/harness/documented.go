// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
