// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/borough-io/borough/test/harness"
)

// runCommands runs the commands of a document like a user who pastes them into a shell,
// which continues after one that fails. It returns whether the last one succeeded.
func runCommands(t *testing.T, dir, document, name, dataDir string) bool {
	t.Helper()
	commands, err := harness.Documented(document, name)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", commands)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "DATA_DIR="+dataDir)
	out, err := cmd.CombinedOutput()
	t.Logf("%s: %v\n%s", name, err, out)
	return err == nil
}

// write writes a file and creates the directories above.
func write(t *testing.T, content string, path ...string) {
	t.Helper()
	file := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func wantContent(t *testing.T, want string, path ...string) {
	t.Helper()
	if got, err := os.ReadFile(filepath.Join(path...)); err != nil || string(got) != want {
		t.Errorf("%s: got %q, %v, want %q", filepath.Join(path...), got, err, want)
	}
}

// TestSecondBackup checks that the commands for a backup do not hide it in an earlier one,
// which a restore would take.
func TestSecondBackup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	write(t, "first", data, "etcd", "db")
	if !runCommands(t, dir, "backup.md", "standalone-backup", data) {
		t.Fatal("the first backup failed")
	}
	wantContent(t, "first", dir, "borough-backup", "etcd", "db")
	if runCommands(t, dir, "backup.md", "standalone-backup", data) {
		t.Error("a second backup with the same name succeeded")
	}
}

// TestRestoreKeepsTheData restores where the data directory cannot be moved, because its
// name ends with a slash. What is in it must stay.
func TestRestoreKeepsTheData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, "live", dir, "data", "etcd", "db")
	write(t, "backup", dir, "borough-backup", "etcd", "member", "snap", "db")
	if runCommands(t, dir, "backup.md", "standalone-restore", filepath.Join(dir, "data")+"/") {
		t.Error("the restore succeeded")
	}
	wantContent(t, "live", dir, "data", "etcd", "db")
}

// TestRepeatedRestore runs what the Pod of a member runs before etcd is restored: twice, as
// when the restore of a later member failed, and for a later restore. The data from before
// the restore must stay until then.
func TestRepeatedRestore(t *testing.T) {
	t.Parallel()
	commands, err := harness.Documented("backup.md", "restore-in-cluster")
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`command: \["sh", "-c", "([^"]* cd /var/lib/etcd; [^"]*)"\]`).FindStringSubmatch(commands)
	if command == nil {
		t.Fatal("the commands have no Pod with a command in /var/lib/etcd")
	}
	volume, snapshot := t.TempDir(), t.TempDir()
	write(t, "", snapshot, "received")
	receive := func(replaced string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.NewReplacer("/var/lib/etcd", volume, "/snapshot", snapshot).Replace(command[1]))
		cmd.Env = append(os.Environ(), "replaced="+replaced)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if _, err := os.Stat(filepath.Join(volume, "data")); err == nil {
			t.Error("data is still there, so etcdutl fails")
		}
	}
	write(t, "live", volume, "data", "db")
	receive("data.replaced-1")
	write(t, "restored", volume, "data", "db")
	receive("data.replaced-1")
	wantContent(t, "live", volume, "data.replaced-1", "db")

	write(t, "restored", volume, "data", "db")
	receive("data.replaced-2")
	wantContent(t, "restored", volume, "data.replaced-2", "db")
	if _, err := os.Stat(filepath.Join(volume, "data.replaced-1")); err == nil {
		t.Error("the volume still has the data from before an earlier restore")
	}
}

// TestEtcdctlTimeout checks that etcdctl waits for the commands that take long in a large
// database. By default it gives up after five seconds, the member continues, and the next
// command begins.
func TestEtcdctlTimeout(t *testing.T) {
	t.Parallel()
	commands, err := harness.Documented("operations.md", "full")
	if err != nil {
		t.Fatal(err)
	}
	for _, slow := range []string{"etcdctl compact ", "etcdctl defrag "} {
		_, arguments, found := strings.Cut(commands, slow)
		if first, _, _ := strings.Cut(arguments, " "); !found || first != "--command-timeout=10m" {
			t.Errorf("%s: got %q, want a timeout", slow, first)
		}
	}
}

// TestSecondRotation rotates the CA when the one before the last was kept, because its key
// was known to others. It must not be trusted again.
func TestSecondRotation(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	write(t, "known to others", data, "pki.old", "ca.crt")
	write(t, "current", data, "pki", "ca.crt")
	if !runCommands(t, data, "authentication.md", "rotate-ca", data) {
		t.Error("the rotation failed")
	}
	wantContent(t, "current", data, "pki.old", "ca.crt")
}
