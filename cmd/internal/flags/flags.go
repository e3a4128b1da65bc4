// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package flags parses and checks values of flags that both commands have.
package flags

import (
	"fmt"
	"strings"
	"time"

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

// minCertLifetime is the shortest lifetime of a certificate that leaves time to
// distribute the next one.
const minCertLifetime = 30 * time.Second

// CheckCertLifetime returns an error if the value of a flag for the lifetime of
// certificates is too short.
func CheckCertLifetime(flag string, value time.Duration) error {
	if value < minCertLifetime {
		return fmt.Errorf("--%s must be at least %s, not %s", flag, minCertLifetime, value)
	}
	return nil
}
