// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/borough-io/borough/test/harness"
)

// TestRestorePod checks that the Pod of a restore gets its image, and is admitted and
// scheduled, as those of etcd.
func TestRestorePod(t *testing.T) {
	kubectl, err := harness.KubectlPath()
	if err != nil {
		t.Fatal(err)
	}
	commands, err := harness.Documented("backup.md", "restore-in-cluster")
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range map[string]string{
		"default": "{}",
		"values": `{"image": {"pullSecrets": [{"name": "a"}, {"name": "b"}]}, "etcd": {"image": "registry.example.com/etcd:1",
			"resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}, "tolerations": [{"key": "c", "operator": "Exists"}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := func(name string) string { return filepath.Join(dir, name) }
			write := func(name, content string) {
				if err := os.WriteFile(file(name), []byte(content), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			write("values.yaml", values)
			write("etcd.yaml", string(helm(t, "--values="+file("values.yaml"), "--show-only=templates/etcd/stateful-set.yaml")))
			// In place of a cluster: it has etcd.yaml, and stores what is created in pod.yaml.
			write("kubectl", fmt.Sprintf(`#!/usr/bin/env bash
case "$*" in
*" get statefulset "*) exec %q label --local --filename=etcd.yaml a=b "${@: -1}" ;;
"create "*) cat >pod.yaml ;;
esac
`, kubectl))
			script := "NAMESPACE=" + namespace + "; replicas() { echo 1; }\n" + commands
			if err := harness.RunScript(dir, script, "PATH="+dir+":"+os.Getenv("PATH")); err != nil {
				t.Fatal(err)
			}

			etcd := decodeFile[*appsv1.StatefulSet](t, file("etcd.yaml")).Spec.Template.Spec
			pod := decodeFile[*corev1.Pod](t, file("pod.yaml")).Spec
			if got, want := pod.Containers[0].Image, etcd.Containers[0].Image; got != want {
				t.Errorf("the image is %q, not %q", got, want)
			}
			if diff := cmp.Diff(etcd.ImagePullSecrets, pod.ImagePullSecrets); diff != "" {
				t.Errorf("imagePullSecrets (-etcd +restore):\n%s", diff)
			}
			if diff := cmp.Diff(etcd.Tolerations, pod.Tolerations); diff != "" {
				t.Errorf("tolerations (-etcd +restore):\n%s", diff)
			}
			for _, c := range append(pod.InitContainers, pod.Containers...) {
				if diff := cmp.Diff(etcd.Containers[0].Resources, c.Resources); diff != "" {
					t.Errorf("resources of %s (-etcd +restore):\n%s", c.Name, diff)
				}
			}
		})
	}
}

// decodeFile decodes the object of a type in a file.
func decodeFile[T object](t *testing.T, file string) (found T) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	each(decode(t, content), func(o T) { found = o })
	return found
}
