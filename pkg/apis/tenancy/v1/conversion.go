// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func addFieldLabelConversions(scheme *runtime.Scheme) error {
	return AddFieldLabelConversions(scheme, SchemeGroupVersion)
}

// AddFieldLabelConversions adds the fields that the kinds in a group version can be
// selected by, if not only by name and namespace. The rules are those of core/v1.
func AddFieldLabelConversions(scheme *runtime.Scheme, gv schema.GroupVersion) error {
	for kind, labels := range map[string][]string{
		"Namespace": {"metadata.name", "status.phase"},
		"Project":   {"metadata.name", "status.phase"},
		"Pod": {
			"metadata.name", "metadata.namespace",
			"spec.nodeName", "spec.restartPolicy", "spec.schedulerName",
			"spec.serviceAccountName", "spec.hostNetwork",
			"status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName",
		},
	} {
		if err := scheme.AddFieldLabelConversionFunc(gv.WithKind(kind), selectableBy(labels)); err != nil {
			return err
		}
	}
	return nil
}

// renamedFields are names that old clients of core/v1 select by, with today's.
var renamedFields = map[string]string{"spec.host": "spec.nodeName"}

func selectableBy(labels []string) runtime.FieldLabelConversionFunc {
	known := make(map[string]bool, len(labels))
	for _, label := range labels {
		known[label] = true
	}
	return func(label, value string) (string, string, error) {
		if current, renamed := renamedFields[label]; renamed && known[current] {
			label = current
		}
		if !known[label] {
			return "", "", fmt.Errorf("field label not supported: %s", label)
		}
		return label, value, nil
	}
}
