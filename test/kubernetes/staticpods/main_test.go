// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package staticpods has the kubelet's own code read the Pods of a node from a real
// standalone server, as a kubelet with staticPodURL does.
package staticpods

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

// program is the path of kube/staticpods.
var program string

func TestMain(m *testing.M) {
	harness.Main(m, func(m *testing.M) (code int, err error) {
		if _, err := harness.Binary("borough-apiserver"); err != nil {
			return 0, err
		}
		dir, err := os.MkdirTemp("", "borough-staticpods-")
		if err != nil {
			return 0, err
		}
		defer os.RemoveAll(dir)
		program = filepath.Join(dir, "staticpods")
		build := exec.Command("go", "-C", filepath.Join(harness.Root, "test", "kubernetes", "kube"), "build", "-o", program, "./staticpods")
		if out, err := build.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("build staticpods: %w\n%s", err, out)
		}
		return m.Run(), nil
	})
}

// kubelet is a process with the kubelet's code.
type kubelet struct {
	process *harness.Process
	handled int // number of updates that were returned
}

// startKubelet starts a process that reads the Pods of a node.
func startKubelet(t *testing.T, url, token, node string) *kubelet {
	t.Helper()
	return &kubelet{process: harness.StartForTest(t, program, "--url="+url, "--token="+token, "--node="+node)}
}

// update is what the program prints.
type update struct {
	Operation string
	Pods      []*corev1.Pod
}

// updates returns those that were not returned before.
func (k *kubelet) updates(t *testing.T) (all []update) {
	t.Helper()
	output := k.process.Output()
	lines := bufio.NewScanner(strings.NewReader(output[:strings.LastIndex(output, "\n")+1]))
	lines.Buffer(nil, len(output)+1)
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), "{") {
			continue // the log
		}
		var u update
		if err := json.Unmarshal(lines.Bytes(), &u); err != nil {
			t.Fatalf("decode an update: %v\n%s", err, lines.Text())
		}
		all = append(all, u)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	all = all[k.handled:]
	k.handled += len(all)
	return all
}

// next waits for the next update, and checks its operation and which Pods it has.
func (k *kubelet) next(t *testing.T, operation string, names ...string) []*corev1.Pod {
	t.Helper()
	var got []update
	poll.Eventually(t, func() string {
		if got = k.updates(t); len(got) == 0 {
			return "there is no update " + operation
		}
		return ""
	})
	wantUpdate(t, got, operation, names...)
	return got[0].Pods
}

// wantUpdate fails the test unless there is one update, with that operation and those
// Pods.
func wantUpdate(t *testing.T, got []update, operation string, names ...string) {
	t.Helper()
	var have []string
	for _, pod := range got[0].Pods {
		have = append(have, pod.Namespace+"/"+pod.Name)
	}
	if len(got) != 1 || got[0].Operation != operation || strings.Join(have, " ") != strings.Join(names, " ") {
		t.Fatalf("got %d updates, first %s of %q; want one, %s of %q", len(got), got[0].Operation, have, operation, names)
	}
}

// removed waits for the next update, and checks that it removes the Pod, which was deleted
// without a grace period. The API server first marks the Pod, which may be one update more.
func (k *kubelet) removed(t *testing.T, name string) {
	t.Helper()
	var got []update
	poll.Eventually(t, func() string {
		got = append(got, k.updates(t)...)
		if len(got) == 0 || len(got) == 1 && got[0].marks() {
			return "there is no update REMOVE"
		}
		return ""
	})
	if got[0].marks() {
		wantUpdate(t, got[:1], "DELETE", name)
		got = got[1:]
	}
	wantUpdate(t, got, "REMOVE", name)
}

// marks reports whether the update is of a Pod that is deleted without a grace period.
func (u *update) marks() bool {
	if u.Operation != "DELETE" || len(u.Pods) != 1 {
		return false
	}
	period := u.Pods[0].DeletionGracePeriodSeconds
	return period != nil && *period == 0
}

// logs waits until the process has logged the text.
func (k *kubelet) logs(t *testing.T, text string) {
	t.Helper()
	poll.Eventually(t, func() string {
		if !strings.Contains(k.process.Output(), text) {
			return "it has not logged: " + text
		}
		return ""
	})
}
