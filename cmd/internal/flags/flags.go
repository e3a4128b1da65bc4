// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package flags parses values of flags that both commands have.
package flags

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// NamespacedName parses the value NAMESPACE/NAME of a flag.
func NamespacedName(flag, value string) (types.NamespacedName, error) {
	namespace, name, ok := strings.Cut(value, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}, fmt.Errorf("--%s must be NAMESPACE/NAME, not %q", flag, value)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}
