// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility_test

import (
	"fmt"
	"testing"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// TestMergedWatchAfterList checks that a client can watch from the list that it gets after
// more changes of the policy than the history has, with no change of a Namespace since:
// otherwise it lists and watches forever.
func TestMergedWatchAfterList(t *testing.T) {
	const changes = 50_100 // more than the index and the views keep
	for name, role := range map[string]string{"of other rights": "unknown", "of other users": "view"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, merged := newMergedFixture(t)
			f.put(t, newNamespace("a"))
			merged.SetPolicy(policyChange(newRole("view", []string{"get"}), false))
			merged.SetPolicy(policyChange(bind("a", "x", "view", "u"), false))
			f.run(t)
			for i := range changes {
				merged.SetPolicy(policyChange(bind("b", "y", role, fmt.Sprint("other", i%2)), false))
			}
			if _, err := f.client.Put(t.Context(), "/outside", ""); err != nil { // a Pod, an Event
				t.Fatal(err)
			}
			projects := f.projects(t, "u")
			list, err := projects.List(t.Context(), &metainternalversion.ListOptions{}, everything())
			if err != nil || len(list.Items) != 1 {
				t.Fatalf("got %v, %v", list, err)
			}
			w, err := projects.Watch(t.Context(), &metainternalversion.ListOptions{Watch: true, ResourceVersion: list.ResourceVersion}, everything())
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			f.put(t, newNamespace("a", "gold"))
			event := <-w.ResultChan()
			if p, ok := event.Object.(*tenancy.Project); !ok || event.Type != apiwatch.Modified || p.Labels["tier"] != "gold" {
				t.Errorf("a watch from the list at %s got %v %v", list.ResourceVersion, event.Type, event.Object)
			}
		})
	}
}
