// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/source"
	"github.com/borough-io/borough/test/harness"
)

// sourceProcess is how the tests run borough-source.
type sourceProcess struct {
	path       string
	kubeconfig string
}

func newSourceProcess(t *testing.T, b *harness.Borough) sourceProcess {
	t.Helper()
	path, err := harness.Binary("borough-source")
	if err != nil {
		t.Fatal(err)
	}
	return sourceProcess{path: path, kubeconfig: filepath.Join(b.Dir, "admin.kubeconfig")}
}

// start starts the program. It is stopped when the test ends.
func (s sourceProcess) start(t *testing.T, args ...string) *harness.Process {
	t.Helper()
	return harness.StartForTest(t, s.path, append([]string{"--kubeconfig=" + s.kubeconfig, "--http-bind-address="}, args...)...)
}

// run returns the exit code and the output of the program.
func (s sourceProcess) run(t *testing.T, args ...string) (code int, output string) {
	t.Helper()
	p := s.start(t, args...)
	select {
	case <-p.Done():
	case <-t.Context().Done():
		t.Fatal("the program has not ended")
	}
	lines := slices.DeleteFunc(strings.SplitAfter(p.Output(), "\n"), func(line string) bool {
		return strings.HasSuffix(line, "Data race detection enabled\n") // of a binary with the race detector
	})
	return p.ExitCode(), strings.Join(lines, "")
}

func manifest(name, image string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: '%s'}]}\n", name, image)
}

// TestSource runs the program as a user does.
func TestSource(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := newSourceProcess(t, b)
	dir := t.TempDir()
	from, node := "--from="+dir, "--node=n1"
	if err := os.WriteFile(filepath.Join(dir, "web.yaml"), []byte(manifest("web", "nginx")), 0o644); err != nil {
		t.Fatal(err)
	}
	code, output := s.run(t, from, node, "--dry-run")
	if code != 0 || !strings.Contains(output, "+++ source/web-n1\n") {
		t.Errorf("--dry-run: %d, %s", code, output)
	}
	if code, output := s.run(t, from, node, "--once"); code != 0 {
		t.Errorf("--once: %d, %s", code, output)
	}
	identity := source.Identity{Kind: source.File, Location: dir, Node: "n1"}
	got := b.Kubectl(t, "get", "pods", "-n", identity.Namespace(), "-o=custom-columns=:.metadata.name,:.spec.nodeName,:.spec.containers[*].image")
	wantEqual(t, "the Pods", strings.Fields(got), []string{"web-n1", "n1", "nginx"})
	if code, output := s.run(t, from, node, "--dry-run"); code != 0 || output != "" {
		t.Errorf("--dry-run without a difference: %d, %s", code, output)
	}
	if err := os.WriteFile(filepath.Join(dir, "web.yaml"), []byte(manifest("web", " ")), 0o644); err != nil {
		t.Fatal(err)
	}
	code, output = s.run(t, from, node, "--once")
	last := output[strings.LastIndex(strings.TrimSpace(output), "\n")+1:]
	if code != 1 || !strings.HasPrefix(last, "borough-source: the Pod web: ") {
		t.Errorf("--once with an invalid Pod: %d, %s", code, output)
	}

	for args, want := range map[string]string{
		"":                                      "[--node: is required, --from: is required]",
		"--node=n1":                             "--from: is required",
		"--node=N1 " + from:                     `borough-source: --node: "N1": a lowercase RFC 1123 subdomain must`,
		"--node=n1 --from=http://h/":            "--from: http://h/: the URL of a source must begin with https://",
		node + " " + from + " " + from:          "--from: " + dir + " is given twice",
		node + " " + from + " --once --dry-run": "--once and --dry-run cannot be set together",
		node + " " + from + " --once --prune-namespace":            "--prune-namespace cannot be set together with",
		node + " " + from + " --namespace=A":                       `--namespace: "A": `,
		node + " " + from + " --url-client-key=k":                  "--url-client-certificate and --url-client-key must be set together",
		node + " --from=https://h/ --url-ca-file=/does/not/exist":  "--from=https://h/: set up the client of the source: ",
		node + " " + from + " --leader-elect-lease-duration=500ms": "borough-source: --leader-elect-lease-duration: must be more than --leader-elect-renew-deadline in whole seconds",
		node + " " + from + " --url-interval=0s":                   "--url-interval: must be at least 1s",
	} {
		code, output := s.run(t, strings.Fields(args)...)
		if code != 1 || !strings.HasPrefix(output, "borough-source: ") || !strings.Contains(output, want) || strings.Count(output, "\n") != 1 {
			t.Errorf("%s: %d, %q, want %q", args, code, output, want)
		}
	}
}

// kills is how often TestSourceKilled kills the program.
const kills = 40

// TestSourceKilled kills the program in the middle of its writes. The Pods that are in the
// files all the time are never deleted, and in the end the Pods are those of the files.
func TestSourceKilled(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := newSourceProcess(t, b)
	client := b.Client(t).TenancyV1()
	const pods = 10
	namespace := newNamespace(t, b)
	events, err := client.Pods(namespace).Watch(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()

	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "."+name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "."+name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"--from=" + dir, "--node=n1", "--namespace=" + namespace, "--leader-elect=false"}
	// check returns an error if a Pod that is in the files all the time is being deleted.
	check := func(event watch.Event) error {
		pod, ok := event.Object.(*v1.Pod)
		switch {
		case !ok:
			return fmt.Errorf("the watch has ended: %v", event.Object)
		case strings.HasPrefix(pod.Name, "always-") && (event.Type == watch.Deleted || pod.DeletionTimestamp != nil):
			return fmt.Errorf("the Pod %s was deleted: %s", pod.Name, event.Type)
		}
		return nil
	}
	written := 0
	for round := range kills {
		for i := range pods {
			write(fmt.Sprintf("always-%d.yaml", i), manifest(fmt.Sprintf("always-%d", i), fmt.Sprint("image:", round)))
		}
		write("some.yaml", manifest(fmt.Sprintf("some-%d", round%3), "image")+"---\n"+manifest(fmt.Sprintf("some-%d", 3+round%4), "image"))
		p := s.start(t, args...)
		for range rand.IntN(pods) + 1 {
			select {
			case event := <-events.ResultChan():
				if err := check(event); err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				written++
			case <-p.Done():
				t.Fatalf("round %d: the program has ended:\n%s", round, p.Output())
			}
		}
		p.Kill()
	}
	if code, output := s.run(t, append(args, "--once")...); code != 0 {
		t.Errorf("--once: %d, %s", code, output)
	}
	list, err := client.Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{fmt.Sprintf("some-%d-n1", (kills-1)%3): "image", fmt.Sprintf("some-%d-n1", 3+(kills-1)%4): "image"}
	for i := range pods {
		want[fmt.Sprintf("always-%d-n1", i)] = fmt.Sprint("image:", kills-1)
	}
	got := map[string]string{}
	for _, pod := range list.Items {
		got[pod.Name] = pod.Spec.Containers[0].Image
	}
	wantEqual(t, "the Pods", got, want)
	createPod(t, b, namespace, newPod("last"))
	for last := false; !last; written++ {
		event := <-events.ResultChan()
		if err := check(event); err != nil {
			t.Fatal(err)
		}
		last = event.Object.(*v1.Pod).Name == "last"
	}
	t.Logf("%d kills, %d writes", kills, written)
}

// TestSourceRights runs the program as a user with the rights that the documentation gives
// it: in the Namespace of its source, and in one that it was given.
func TestSourceRights(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := newSourceProcess(t, b)
	server, err := harness.Binary("borough-apiserver")
	if err != nil {
		t.Fatal(err)
	}
	s.kubeconfig = filepath.Join(t.TempDir(), "node-1.kubeconfig")
	p, err := harness.StartProcess(server, "kubeconfig", "--data-dir="+b.Dir, "--user=borough-source:node-1", "--group=borough-sources", "--output="+s.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if <-p.Done(); p.ExitCode() != 0 {
		t.Fatal(p.Output())
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "web.yaml"), []byte(manifest("web", "nginx")), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"--from=" + dir, "--node=node-1", "--once"}
	for timeout := time.Second; ; timeout *= 2 { // until there is time for an answer of the server
		code, output := s.run(t, append(args, fmt.Sprint("--once-timeout=", timeout))...)
		if code == 1 && strings.Contains(output, "cannot create resource") {
			break
		}
		if code != 1 || timeout == 32*time.Second {
			t.Fatalf("without rights: %d, %s", code, output)
		}
	}
	b.Kubectl(t, "create", "clusterrolebinding", "borough-sources", "--clusterrole=borough-source-requester", "--group=borough-sources")
	if code, output := s.run(t, args...); code != 0 {
		t.Errorf("with the right to request a Namespace: %d, %s", code, output)
	}
	b.Kubectl(t, "create", "namespace", "registered")
	b.Kubectl(t, "create", "rolebinding", "borough-source", "--clusterrole=borough-source", "--user=borough-source:node-1", "--namespace=registered")
	if code, output := s.run(t, append(args, "--namespace=registered")...); code != 0 {
		t.Errorf("with rights in a Namespace: %d, %s", code, output)
	}
	got := b.Kubectl(t, "get", "pods", "-A", "-o=custom-columns=:.metadata.namespace,:.metadata.name")
	identity := source.Identity{Kind: source.File, Location: dir, Node: "node-1"}
	wantEqual(t, "the Pods", strings.Fields(got), []string{identity.Namespace(), "web-node-1", "registered", "web-node-1"})
}
