// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package podsource

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/borough-io/borough/pkg/source"
)

// TestUnread checks which Pods of the API a source may have in files that were never read.
func TestUnread(t *testing.T) {
	unread := source.Manifest{Err: errors.New("is empty")}
	for name, tc := range map[string]struct {
		file  string // of the Pod in the API
		files map[string]source.Manifest
		known bool
	}{
		"a file is gone":                        {"a.yaml", map[string]source.Manifest{}, true},
		"another file cannot be read":           {"a.yaml", map[string]source.Manifest{"b.yaml": unread}, true},
		"the file cannot be read":               {"a.yaml", map[string]source.Manifest{"a.yaml": unread, "b.yaml": {}}, false},
		"a directory is a file":                 {"a.yaml", map[string]source.Manifest{"": {}}, true},
		"a file is a directory":                 {"", map[string]source.Manifest{"a.yaml": {}}, true},
		"a file is a directory that has broken": {"", map[string]source.Manifest{"a.yaml": {}, "b.yaml": unread}, false},
	} {
		t.Run(name, func(t *testing.T) {
			live := &unstructured.Unstructured{Object: map[string]any{}}
			live.SetAnnotations(map[string]string{source.FileAnnotation: tc.file})
			desired := newDesiredPods(source.Identity{Kind: source.File, Location: "/p", Node: "n"})
			if _, known := desired.get("p-n", live); known {
				t.Error("known before the source was read")
			}
			desired.set(source.Content{Files: tc.files})
			if pod, known := desired.get("p-n", live); pod != nil || known != tc.known {
				t.Errorf("got %v, known %t, want %t", pod, known, tc.known)
			}
		})
	}
}
