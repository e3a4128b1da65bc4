// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/quota"
	"github.com/borough-io/borough/pkg/storage/charge"
	"github.com/borough-io/borough/pkg/storage/fence"
	"github.com/borough-io/borough/pkg/storage/precondition"
	"github.com/borough-io/borough/pkg/storage/stored"
)

func TestConfig(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*fence.Config)
		want   string
	}{
		"no namespaces":   {func(c *fence.Config) { c.Namespaces = stored.Resource{} }, "needs a prefix"},
		"no slash":        {func(c *fence.Config) { c.Namespaced[0].Prefix = "/registry/pods" }, "needs a prefix"},
		"root":            {func(c *fence.Config) { c.Namespaced[0].Prefix = "/" }, "needs a prefix"},
		"too many":        {func(c *fence.Config) { c.Namespaced = make([]stored.Resource, fence.MaxNamespaced+1) }, "more than the 127"},
		"no generation":   {func(c *fence.Config) { c.GenerationKey = "" }, "generation"},
		"no guards":       {func(c *fence.Config) { c.GuardPrefix = "" }, "guards"},
		"none is allowed": {func(c *fence.Config) { c.Namespaced = nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := config()
			test.change(&c)
			_, err := fence.New(c)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// TestConditionalResources shows which resources transactions may have conditions on: the prefix
// of another one would be that of all keys.
func TestConditionalResources(t *testing.T) {
	f := newFixture(t, func(c *fence.Config) {
		c.Conditional = []stored.Resource{{GroupResource: tenancy.Resource("rules"), Prefix: rulesPrefix}}
	})
	if prefix, err := f.fence.ConditionPrefix(tenancy.Resource("rules")); err != nil || prefix != rulesPrefix {
		t.Errorf("got %q, %v", prefix, err)
	}
	if prefix, err := f.fence.ConditionPrefix(schema.GroupResource{Resource: "rules"}); err == nil {
		t.Errorf("of another group: got %q", prefix)
	}
}

// TestNoStoreIsOpen reads with a fence before the first store of a namespaced resource is open.
func TestNoStoreIsOpen(t *testing.T) {
	c := config()
	charger, err := charge.New([]stored.Resource{{GroupResource: tenancy.Resource("resourcequotas")}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Charger = charger
	closed, err := fence.New(c)
	if err != nil {
		t.Fatal(err)
	}
	_, checked := closed.Check(t.Context(), precondition.Objects{Resource: tenancy.Resource("limitranges"), Namespace: "town"})
	_, guarded := closed.Guard(t.Context(), "alice")
	_, counted := closed.CheckQuotas(t.Context(), "town", &quota.Change{Resource: tenancy.Resource("pods")})
	for _, err := range []error{checked, guarded, counted} {
		if err == nil || !strings.Contains(err.Error(), "no store is open") {
			t.Errorf("got %v", err)
		}
	}
	// Without a charger there is nothing to check.
	c.Charger = nil
	if closed, err = fence.New(c); err != nil {
		t.Fatal(err)
	}
	if denial, err := closed.CheckQuotas(t.Context(), "town", &quota.Change{}); denial != nil || err != nil {
		t.Errorf("got %v, %v", denial, err)
	}
}
