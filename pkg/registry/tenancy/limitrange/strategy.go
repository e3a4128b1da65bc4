// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limitrange

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/standard"
)

// strategy holds the rules for LimitRanges.
type strategy struct {
	standard.KindStrategy[*tenancy.LimitRange]
}

// PrepareForCreate names a LimitRange that has no name, as core/v1 does.
func (strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	lr := obj.(*tenancy.LimitRange)
	if lr.Name == "" {
		lr.Name = string(uuid.NewUUID())
	}
}
