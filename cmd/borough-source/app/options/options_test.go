// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"strings"
	"testing"
	"time"
)

// TestValidateInOrder checks that invalid flags are always listed in the same order.
func TestValidateInOrder(t *testing.T) {
	o := New()
	o.Namespace, o.LeaderElection.ResourceNamespace = "A", "B"
	o.HTTP.Timeout, o.OnceTimeout = 0, 0
	want := o.Validate().Error()
	for range 20 {
		if got := o.Validate().Error(); got != want {
			t.Fatalf("got\n%s\nafter\n%s", got, want)
		}
	}
}

// TestValidateNode checks that an invalid node is reported as such, and the source as well.
func TestValidateNode(t *testing.T) {
	for node, want := range map[string]string{
		"":   "[--node: is required, --from: http://h: the URL",
		"N":  `[--node: "N": a lowercase RFC 1123 subdomain must`,
		"n.": `[--node: "n.": a lowercase RFC 1123 subdomain must`,
		"n1": "--from: http://h: the URL",
	} {
		o := New()
		o.Node, o.From = node, []string{"http://h"}
		if err := o.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "--from: http://h: the URL") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestValidateOnceTimeout sets the timeout with --once, and without it.
func TestValidateOnceTimeout(t *testing.T) {
	for _, tc := range []struct {
		once, dryRun bool
		want         string
	}{
		{once: true},
		{want: "--once-timeout needs --once"},
		{dryRun: true, want: "--once-timeout needs --once"},
	} {
		o := New()
		o.Node, o.From = "n1", []string{"/pods"}
		o.Once, o.DryRun, o.OnceTimeout = tc.once, tc.dryRun, time.Minute
		if err := o.Validate(); tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%+v: got %v", tc, err)
		}
	}
}

// TestValidatePruneNamespace sets --prune-namespace alone, and with each flag that excludes it.
func TestValidatePruneNamespace(t *testing.T) {
	for name, set := range map[string]func(*Options){
		"":          func(*Options) {},
		"once":      func(o *Options) { o.Once = true },
		"dry-run":   func(o *Options) { o.DryRun = true },
		"namespace": func(o *Options) { o.Namespace = "n" },
	} {
		o := New()
		o.Node, o.From, o.PruneNamespace = "n1", []string{"/pods"}, true
		set(o)
		err := o.Validate()
		if refused := err != nil && strings.Contains(err.Error(), "--prune-namespace cannot be set together with"); refused != (name != "") || !refused && err != nil {
			t.Errorf("with --%s: got %v", name, err)
		}
	}
}
