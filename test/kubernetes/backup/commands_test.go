// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
)

// runDocumented runs the commands of docs/operations.md that a comment names,
// in a directory and with variables.
func runDocumented(dir, name string, variables ...string) error {
	doc, err := os.ReadFile(filepath.Join(harness.Root, "docs", "operations.md"))
	if err != nil {
		return err
	}
	_, after, found := strings.Cut(string(doc), "<!-- "+name+" -->\n```bash\n")
	commands, _, ended := strings.Cut(after, "```\n")
	if !found || !ended {
		return fmt.Errorf("docs/operations.md has no commands named %s", name)
	}
	etcdctl, err := testcluster.Binary("etcdctl")
	if err != nil {
		return err
	}
	cmd := exec.Command("bash", "-o", "errexit", "-o", "nounset", "-c", commands)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), append(variables, "PATH="+filepath.Dir(etcdctl)+":"+os.Getenv("PATH"))...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("the commands named %s in docs/operations.md: %w\n%s", name, err, out)
	}
	return nil
}
