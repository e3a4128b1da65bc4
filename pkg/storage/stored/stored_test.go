// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package stored_test

import (
	"strings"
	"testing"

	"github.com/borough-io/borough/pkg/storage/stored"
)

func FuzzSplit(f *testing.F) {
	const prefix = "/registry/tenancy.borough.io/pods/"
	for _, key := range []string{prefix, prefix + "town/p", prefix + "town", prefix + "/p", prefix + "a/b/c", "", "/"} {
		f.Add(prefix, key)
	}
	f.Fuzz(func(t *testing.T, prefix, key string) {
		namespace, name, ok := (&stored.Resource{Prefix: prefix}).Split(key)
		if ok && prefix+namespace+"/"+name != key {
			t.Errorf("%q is not put together again from %q and %q", key, namespace, name)
		}
		if ok && (namespace == "" || name == "" || strings.Contains(namespace+name, "/")) {
			t.Errorf("%q gives %q and %q", key, namespace, name)
		}
		if rest, found := strings.CutPrefix(key, prefix); !ok && found {
			parts := strings.Split(rest, "/")
			if len(parts) == 2 && parts[0] != "" && parts[1] != "" {
				t.Errorf("%q is rejected", key)
			}
		}
	})
}
