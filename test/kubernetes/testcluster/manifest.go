// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"fmt"
	"os"
	"path/filepath"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/borough-io/borough/test/harness"
)

// EtcdManifest returns the StatefulSet of the etcd that Borough is deployed with.
func EtcdManifest() (*appsv1.StatefulSet, error) {
	data, err := os.ReadFile(filepath.Join(harness.Root, "artifacts", "deploy", "components", "etcd", "stateful-set.yaml"))
	if err != nil {
		return nil, fmt.Errorf("read the manifest of etcd: %w", err)
	}
	set := &appsv1.StatefulSet{}
	if err := yaml.UnmarshalStrict(data, set); err != nil {
		return nil, fmt.Errorf("read the manifest of etcd: %w", err)
	}
	return set, nil
}
