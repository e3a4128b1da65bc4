// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility_test

import (
	"testing"
	"time"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	utilflowcontrol "k8s.io/apiserver/pkg/util/flowcontrol"
)

// TestSeat checks that a watch occupies a seat of priority and fairness only until it has
// sent its initial events.
func TestSeat(t *testing.T) {
	f := newFixture(t)
	revision := f.put(t, newNamespace("a"))
	f.run(t)
	for name, options := range map[string]metainternalversion.ListOptions{
		"begins with all":          {},
		"continues from a version": atRevision(revision),
	} {
		t.Run(name, func(t *testing.T) {
			signal := utilflowcontrol.NewInitializationSignal()
			events := watch(utilflowcontrol.WithInitializationSignal(t.Context(), signal), t, f.views.Everything(), options, everything())
			if options.ResourceVersion == "" {
				next(t, events)
			}
			freed := make(chan struct{})
			go func() {
				defer close(freed)
				signal.Wait()
			}()
			select {
			case <-freed:
			case <-time.After(time.Minute):
				t.Error("the watch still occupies it after a minute")
			}
		})
	}
}
