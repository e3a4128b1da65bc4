// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"testing"

	"github.com/borough-io/borough/test/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
