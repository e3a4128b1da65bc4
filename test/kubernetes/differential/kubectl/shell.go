// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/borough-io/borough/test/kubernetes/differential/sides"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
)

// stepTimeout bounds a step.
const stepTimeout = 2 * time.Minute

// shell runs the steps of a script on one side, in a separate directory with
// the manifests of testdata and a kubeconfig for the script's Namespace.
type shell struct {
	dir, namespace string
	inOwnGroup     bool
	env            []string
}

// output is the output of a step and its exit code.
type output struct {
	Stdout, Stderr string
	Exit           int
}

func (o output) String() string {
	s := o.Stdout
	if o.Stderr != "" {
		s += "[stderr]\n" + o.Stderr
	}
	return s + fmt.Sprintf("[%d]\n", o.Exit)
}

// newShell sets up a shell. The Namespace of its script is $NS; its name starts
// with that of the script.
func newShell(t *testing.T, side *sides.Side, name string) (*shell, error) {
	kubectl, err := testcluster.Binary("kubectl")
	if err != nil {
		return nil, err
	}
	namespace, err := newNamespace(t.Context(), side, name)
	if err != nil {
		return nil, fmt.Errorf("make a Namespace: %w", err)
	}
	s := &shell{dir: t.TempDir(), namespace: namespace, inOwnGroup: side.Group != ""}
	kubeconfig := filepath.Join(s.dir, "kubeconfig")
	if err := s.writeKubeconfig(side, kubeconfig); err != nil {
		return nil, err
	}
	if err := s.writeManifests(side); err != nil {
		return nil, err
	}
	s.env = append(os.Environ(),
		"PATH="+filepath.Dir(kubectl)+string(filepath.ListSeparator)+os.Getenv("PATH"),
		"KUBECONFIG="+kubeconfig,
		"KUBECACHEDIR="+filepath.Join(filepath.Dir(side.Kubeconfig), "kubectl-cache"), // cached discovery
		"HOME="+s.dir,
		"TMPDIR="+s.dir,
		"LC_ALL=C",
		"NS="+namespace,
		"API="+side.APIVersion(),
		"G="+strings.TrimSuffix("."+side.Group, "."),
	)
	return s, nil
}

func newNamespace(ctx context.Context, side *sides.Side, name string) (string, error) {
	client, err := dynamic.NewForConfig(side.Config)
	if err != nil {
		return "", err
	}
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion(side.APIVersion())
	namespace.SetKind("Namespace")
	namespace.SetGenerateName(name + "-")
	namespaces := schema.GroupVersionResource{Group: side.Group, Version: "v1", Resource: "namespaces"}
	created, err := client.Resource(namespaces).Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return created.GetName(), nil
}

func (s *shell) writeKubeconfig(side *sides.Side, path string) error {
	config, err := clientcmd.LoadFromFile(side.Kubeconfig)
	if err != nil {
		return err
	}
	config.Contexts[config.CurrentContext].Namespace = s.namespace
	return clientcmd.WriteToFile(*config, path)
}

// writeManifests copies the manifests, which have the apiVersion v1.
func (s *shell) writeManifests(side *sides.Side) error {
	paths, err := fs.Glob(testdata, "testdata/manifests/*")
	if err != nil {
		return err
	}
	for _, file := range paths {
		data, err := testdata.ReadFile(file)
		if err != nil {
			return err
		}
		data = bytes.ReplaceAll(data, []byte("apiVersion: v1\n"), []byte("apiVersion: "+side.APIVersion()+"\n"))
		if err := os.WriteFile(filepath.Join(s.dir, path.Base(file)), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// run runs a step and returns its output, folded.
func (s *shell) run(ctx context.Context, step string) output {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "sh", "-c", step)
	cmd.Dir, cmd.Env = s.dir, s.env
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// Kill all processes of the step with the shell.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		fmt.Fprintf(&stderr, "run the step: %v\n", err)
	}
	return output{s.fold(stdout.String()), s.fold(stderr.String()), cmd.ProcessState.ExitCode()}
}

// fold normalizes what differs between two sides, and between two runs on one.
func (s *shell) fold(text string) string {
	text = strings.ReplaceAll(text, s.dir, "DIR")
	text = strings.ReplaceAll(text, s.namespace, "NS")
	if s.inOwnGroup {
		text = groupNames.Replace(text)
	}
	return fold(text)
}
