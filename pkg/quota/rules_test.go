// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/apis/tenancy/install"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

var update = flag.Bool("update", false, "write testdata/usage.txt")

// TestRules checks that the usage of Pods, as they are read from storage, changes only
// together with the version of the rules.
func TestRules(t *testing.T) {
	const file = "testdata/usage.txt"
	text := "rules: " + Rules + "\n" + usageOfPods(t)
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if text == string(want) {
		return
	}
	version, _, _ := strings.Cut(string(want), "\n")
	if version == "rules: "+Rules {
		t.Fatalf("what Pods use differs from %s: raise Rules, or the usage of quotas that are stored becomes wrong. Then: go test ./pkg/quota -run TestRules -update\ngot:\n%s", file, text)
	}
	if !*update {
		t.Fatalf("%s is of other rules: go test ./pkg/quota -run TestRules -update", file)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// usageOfPods returns a line for each Pod of testdata/pods.yaml, with what it uses and the
// scopes of quotas that count it.
func usageOfPods(t *testing.T) string {
	t.Helper()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	decoder := serializer.NewCodecFactory(scheme).UniversalDecoder(tenancy.SchemeGroupVersion)
	data, err := os.ReadFile("testdata/pods.yaml")
	if err != nil {
		t.Fatal(err)
	}
	kind := v1.SchemeGroupVersion.WithKind("Pod")
	var text strings.Builder
	for documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return text.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		obj, _, err := decoder.Decode(document, &kind, nil)
		if err != nil {
			t.Fatal(err)
		}
		pod := obj.(*tenancy.Pod)
		usage := Of(pods, pod)
		fmt.Fprintf(&text, "%s: %s; %s\n", pod.Name, listText(usage.resources), strings.Join(scopesThatCount(usage), ","))
	}
}

func scopesThatCount(usage *Usage) []string {
	var names []string
	for _, scope := range []corev1.ResourceQuotaScope{
		corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopeBestEffort,
		corev1.ResourceQuotaScopeNotBestEffort, corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeCrossNamespacePodAffinity,
	} {
		if usage.matches(&corev1.ResourceQuotaSpec{Scopes: []corev1.ResourceQuotaScope{scope}}) {
			names = append(names, string(scope))
		}
	}
	return names
}
