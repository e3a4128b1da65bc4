// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
)

// runDocumented runs the commands of docs/backup.md that a comment names,
// in a directory and with variables.
func runDocumented(dir, name string, variables ...string) error {
	commands, err := harness.Documented("backup.md", name)
	if err != nil {
		return err
	}
	etcdctl, err := testcluster.Binary("etcdctl")
	if err != nil {
		return err
	}
	if err := harness.RunScript(dir, commands, append(variables, "PATH="+filepath.Dir(etcdctl)+":"+os.Getenv("PATH"))...); err != nil {
		return fmt.Errorf("the commands named %s in docs/backup.md: %w", name, err)
	}
	return nil
}
