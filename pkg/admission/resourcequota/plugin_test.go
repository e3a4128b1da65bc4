// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/borough-io/borough/pkg/admission/resourcequota"
	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/quota"
)

// exceeded is a quota that allows nothing.
type exceeded struct{}

func (exceeded) CheckQuotas(context.Context, string, *quota.Change) (*quota.Denial, error) {
	return quota.NewDenial("exceeded quota: q"), nil
}

// TestGeneratedName checks that a denial names a Pod whose name was generated.
func TestGeneratedName(t *testing.T) {
	pod := &tenancy.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-", Name: "web-x7k2p", Namespace: "a"}}
	attributes := admission.NewAttributesRecord(pod, nil, v1.SchemeGroupVersion.WithKind("Pod"), "a", "",
		v1.SchemeGroupVersion.WithResource("pods"), "", admission.Create, &metav1.CreateOptions{}, true, nil)
	plugin := &resourcequota.Plugin{}
	plugin.SetQuotas(exceeded{})
	const want = `pods.tenancy.borough.io "web-x7k2p" is forbidden: exceeded quota: q`
	if err := plugin.Validate(t.Context(), attributes, nil); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
