// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestIgnoredFlags sets each flag that has no effect in a mode, to its default.
func TestIgnoredFlags(t *testing.T) {
	check := func(standalone bool, name, want string) {
		t.Helper()
		o := New()
		o.Standalone = standalone
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		for _, set := range o.Flags().FlagSets {
			fs.AddFlagSet(set)
		}
		flag := fs.Lookup(name)
		if flag == nil {
			t.Errorf("there is no flag --%s", name)
			return
		}
		if err := fs.Set(name, flag.DefValue); err != nil {
			t.Fatal(err)
		}
		if errs := o.ignoredFlags(fs); len(errs) != 1 || !strings.Contains(errs[0].Error(), "--"+name+" "+want) {
			t.Errorf("got %v, want --%s %s", errs, name, want)
		}
	}
	for _, name := range clusterFlags {
		check(true, name, "needs a cluster")
	}
	for _, flag := range standaloneFlags {
		check(false, flag.name, "needs --standalone: in a cluster, "+flag.why)
	}
	for _, dependent := range dependentFlags {
		for _, name := range dependent.names {
			name = strings.Replace(name, "*", "mode", 1)
			check(false, name, "needs --"+strings.Join(dependent.needs, " or --"))
		}
	}
	check(true, "audit-log-path", "needs --audit-policy-file")
}
