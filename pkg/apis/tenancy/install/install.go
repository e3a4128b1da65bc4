// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install puts the tenancy.borough.io group into a scheme.
package install

import (
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// Install registers the internal and the v1 types of the group, with their
// defaults and conversions, and makes v1 the preferred version. It panics when
// the scheme already holds something else under these names.
func Install(scheme *runtime.Scheme) {
	utilruntime.Must(tenancy.AddToScheme(scheme))
	utilruntime.Must(v1.AddToScheme(scheme))
	utilruntime.Must(scheme.SetVersionPriority(v1.SchemeGroupVersion))
}
