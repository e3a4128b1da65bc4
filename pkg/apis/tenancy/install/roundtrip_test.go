// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting/roundtrip"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/borough-io/borough/pkg/apis/tenancy/fuzzer"
	"github.com/borough-io/borough/pkg/apis/tenancy/install"
)

// TestRoundTrip encodes randomly filled objects of every kind, in JSON, YAML,
// CBOR and protobuf, and decodes them again.
func TestRoundTrip(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	roundtrip.RoundTripTestForScheme(t, scheme, fuzzer.NewFuncs(scheme))
}
