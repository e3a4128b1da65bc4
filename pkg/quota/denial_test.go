// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

var terminatingFor = regexp.MustCompile(`Terminating for \d+s`)

// TestHolders checks in how many Pods, and in how large ones, a denial looks for those that
// it names.
func TestHolders(t *testing.T) {
	q := counted("pods=1", "pods=1")
	_, denial := (&Change{Resource: pods, New: Of(pods, podOf())}).Used(q)
	for _, test := range []struct {
		name     string
		n, bytes int
		want     string
	}{
		{"none", 0, 0, ""},
		{"few", 2, 0, "pods/p000 (Terminating for 0s) holds pods=1, pods/p001 (Terminating for 0s) holds pods=1"},
		{"many", 100, 0, ", and 97 more Pods that are being deleted"},
		{"too many", 101, 0, ", and perhaps more Pods that are being deleted"},
		{"large", 3, 600 << 10, "pods/p001 (Terminating for 0s) holds pods=1, and perhaps more Pods that are being deleted"},
	} {
		now := metav1.Now()
		var objects []runtime.Object
		for i := range test.n {
			objects = append(objects, with(podOf(), func(pod *tenancy.Pod) {
				pod.Name, pod.DeletionTimestamp = fmt.Sprintf("p%03d", i), &now
				pod.Annotations = map[string]string{"a": strings.Repeat("x", test.bytes)}
			}))
		}
		got := terminatingFor.ReplaceAllString(denial.WithHolders(objects).Error(), "Terminating for 0s")
		if !strings.HasSuffix(got, test.want) || (test.n == 0) == strings.Contains(got, "of which") {
			t.Errorf("%s: got %s, want ...%s", test.name, got, test.want)
		}
	}
}
