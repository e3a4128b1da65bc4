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

// runDocumented runs the commands that a comment names in a file of docs, in a
// directory and with variables.
func runDocumented(dir, file, name string, variables ...string) error {
	commands, err := harness.Documented(file, name)
	if err != nil {
		return err
	}
	etcdctl, err := testcluster.Binary("etcdctl")
	if err != nil {
		return err
	}
	if err := harness.RunScript(dir, commands, append(variables, "PATH="+filepath.Dir(etcdctl)+":"+os.Getenv("PATH"))...); err != nil {
		return fmt.Errorf("the commands named %s in docs/%s: %w", name, file, err)
	}
	return nil
}
