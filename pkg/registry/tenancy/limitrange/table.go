// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limitrange

import (
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// NewTableConvertor prints LimitRanges as kubectl prints those of core/v1: the
// library's two columns, Name and Created At.
func NewTableConvertor() rest.TableConvertor {
	return rest.NewDefaultTableConvertor(tenancy.Resource("limitranges"))
}
