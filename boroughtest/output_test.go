// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package boroughtest_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/grpclog"

	"k8s.io/klog/v2"

	"github.com/borough-io/borough/boroughtest"
)

// inChild is an environment variable that is set in the processes of TestOutput.
const inChild = "BOROUGHTEST_CHILD"

// TestChild runs in the processes of TestOutput.
func TestChild(t *testing.T) {
	how := os.Getenv(inChild)
	if how == "" {
		t.Skip("TestOutput runs it, in another process")
	}
	boroughtest.Start(t)
	t.Setenv("TMPDIR", t.TempDir()) // which is removed with this test
	boroughtest.Shared(t)
	if files, err := os.ReadDir(os.TempDir()); len(files) > 0 || err != nil {
		t.Errorf("the shared server has files in the directory of a test: %v, %v", files, err)
	}
	switch how {
	case "fail":
		t.Error("as expected")
	case "grpc":
		grpclog.Error("an error of gRPC") // with klog, as the API server library sets it
		t.Error("as expected")
	case "exit":
		klog.Error("cannot continue")
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
}

// TestOutput runs tests in other processes. It checks that a test that succeeds prints
// nothing, what one prints that fails or is verbose, and that no files are left.
func TestOutput(t *testing.T) {
	const logged = "Serving securely on 127.0.0.1"
	for name, tc := range map[string]struct {
		env            string
		args           []string
		stdout, stderr string // substrings; if empty, there is nothing else
		fails          bool
	}{
		"success":                            {env: inChild + "=succeed", stdout: "PASS\n"},
		"failure":                            {env: inChild + "=fail", stdout: logged, fails: true},
		"failure, what is logged at the end": {env: inChild + "=fail", stdout: "The namespace controller has ended", fails: true},
		"exit":                               {env: inChild + "=exit", stderr: "cannot continue", fails: true},
		"the test uses gRPC":                 {env: inChild + "=grpc", stdout: "an error of gRPC", fails: true},
		"verbose":                            {env: inChild + "=succeed", args: []string{"-test.v"}, stdout: "--- PASS", stderr: logged},
		"without Main":                       {env: withoutMain + "=1", args: []string{"-test.run=TestBothGroups"}, stdout: "os.Exit(boroughtest.Main(m))", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			tmp := t.TempDir()
			var stdout, stderr bytes.Buffer
			child := exec.CommandContext(t.Context(), os.Args[0], append([]string{"-test.run=TestChild"}, tc.args...)...)
			child.Env = append(os.Environ(), tc.env, "TMPDIR="+tmp, "GOTMPDIR="+tmp)
			child.Stdout, child.Stderr = &stdout, &stderr
			if err := child.Run(); (err != nil) != tc.fails {
				t.Errorf("got %v", err)
			}
			if !strings.Contains(stdout.String(), tc.stdout) || name == "success" && stdout.String() != tc.stdout {
				t.Errorf("the standard output lacks %q:\n%s", tc.stdout, &stdout)
			}
			if !strings.Contains(stderr.String(), tc.stderr) || tc.stderr == "" && stderr.Len() > 0 {
				t.Errorf("the standard error is not %q:\n%s", tc.stderr, &stderr)
			}
			if name == "exit" {
				return // without what removes the files
			}
			if left, err := filepath.Glob(filepath.Join(tmp, "*")); len(left) > 0 || err != nil {
				t.Errorf("files are left: %v, %v", left, err)
			}
		})
	}
}
