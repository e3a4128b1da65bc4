// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"testing"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

func TestWatchCacheFlags(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Options)
		want   bool
	}{
		"default":          {func(*Options) {}, true},
		"off":              {func(o *Options) { o.Etcd.EnableWatchCache = false }, false},
		"no size":          {func(o *Options) { o.Etcd.WatchCacheSizes = []string{"pods.tenancy.borough.io#0"} }, false},
		"size":             {func(o *Options) { o.Etcd.WatchCacheSizes = []string{"pods.tenancy.borough.io#10"} }, true},
		"size of another":  {func(o *Options) { o.Etcd.WatchCacheSizes = []string{"limitranges.tenancy.borough.io#0"} }, true},
		"size of core pod": {func(o *Options) { o.Etcd.WatchCacheSizes = []string{"pods#0"} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			options := NewOptions()
			test.change(options)
			backend := &Backend{options: *options.Etcd}
			got, err := backend.cached(tenancy.Resource("pods"))
			if err != nil || got != test.want {
				t.Errorf("got %t, %v; want %t", got, err, test.want)
			}
		})
	}
}
