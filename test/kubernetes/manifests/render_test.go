// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	logsapi "k8s.io/component-base/logs/api/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/borough-io/borough/test/harness"
)

const (
	root      = "../../.."
	chart     = root + "/artifacts/charts/borough"
	namespace = "borough-system"
	// sourceNamespace is the namespace of the Pods that read sources, and the name of
	// Borough's Namespace for what they read.
	sourceNamespace = "borough-sources"
	// kubeVersion is the oldest Kubernetes version that the chart supports.
	kubeVersion = "1.36.0"
)

// cases are the directories of testdata. Each has a kustomization, and values
// with which the chart must render the same objects.
var cases = []string{"default", "cert-manager", "own-certificates-and-etcd", "single-node", "service-monitor", "everything"}

// tools is where TestMain builds helm.
var tools, _ = filepath.Abs(root + "/.cache/tools")

func TestMain(m *testing.M) {
	// Both commands set up the logging of the process.
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
	build := exec.Command("go", "install", "tool")
	build.Env = append(os.Environ(), "GOBIN="+tools)
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build helm: %v\n%s", err, out)
		os.Exit(1)
	}
	harness.Main(m, func(m *testing.M) (code int, err error) { return m.Run(), nil })
}

// run runs a program and returns its standard output.
func run(ctx context.Context, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %q: %w\n%s", filepath.Base(program), args, err, stderr.Bytes())
	}
	return stdout.Bytes(), nil
}

func kustomize(t *testing.T, name string) []byte {
	t.Helper()
	kubectl, err := harness.KubectlPath()
	if err != nil {
		t.Fatal(err)
	}
	out, err := run(t.Context(), kubectl, "kustomize", filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// template renders the chart in the namespace of the kustomization. Later
// arguments can override that.
func template(ctx context.Context, args ...string) ([]byte, error) {
	return run(ctx, filepath.Join(tools, "helm"), append([]string{"template", "release", chart, "--skip-tests", "--kube-version=" + kubeVersion, "--namespace=" + namespace}, args...)...)
}

func helm(t *testing.T, args ...string) []byte {
	t.Helper()
	out, err := template(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func valuesOf(name string) string {
	return "--values=" + filepath.Join("testdata", name, "values.yaml")
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme,
		apiregistrationv1.AddToScheme,
		certmanagerv1.AddToScheme,
		monitoringv1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}

type object interface {
	metav1.Object
	runtime.Object
}

// objects has the rendered objects by kind, namespace and name.
type objects map[string]object

func key(kind, namespace, name string) string { return kind + " " + namespace + "/" + name }

// decode decodes the rendered objects. Unknown fields, duplicate fields and
// duplicate objects fail the test.
func decode(t *testing.T, rendered []byte) objects {
	t.Helper()
	decoder := serializer.NewCodecFactory(newScheme(), serializer.EnableStrict).UniversalDeserializer()
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(rendered)))
	all := objects{}
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if isComment(document) {
			continue
		}
		decoded, gvk, err := decoder.Decode(document, nil, nil)
		if err != nil {
			t.Errorf("%v in\n%s", err, document)
			continue
		}
		o, ok := decoded.(object)
		if !ok {
			t.Fatalf("%T is not an API object", decoded)
		}
		o.GetObjectKind().SetGroupVersionKind(*gvk)
		k := key(gvk.Kind, o.GetNamespace(), o.GetName())
		if all[k] != nil {
			t.Errorf("duplicate object %s", k)
		}
		all[k] = o
	}
	if len(all) == 0 {
		t.Fatal("nothing was rendered")
	}
	return all
}

// isComment reports whether a document has nothing but comments.
func isComment(document []byte) bool {
	for line := range bytes.Lines(document) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' && string(line) != "---" {
			return false
		}
	}
	return true
}

// each calls f for each object of a type.
func each[T object](all objects, f func(T)) {
	for _, o := range all {
		if o, ok := o.(T); ok {
			f(o)
		}
	}
}

// forEachCase runs a test on the objects that kustomize renders for each case.
func forEachCase(t *testing.T, test func(t *testing.T, all objects)) {
	t.Helper()
	for _, name := range cases {
		t.Run(name, func(t *testing.T) { test(t, decode(t, kustomize(t, name))) })
	}
}
