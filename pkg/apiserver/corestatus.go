// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"io"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/borough-io/borough/pkg/apis/coregroup"
	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// coreSerializer writes errors as kube-apiserver does: what the registries and admission
// call "pods.tenancy.borough.io" is "pods". All groups of Kubernetes need it: the object
// that is not found can be the Namespace of a Role.
type coreSerializer struct{ runtime.NegotiatedSerializer }

// EncoderForVersion implements runtime.NegotiatedSerializer.
func (s coreSerializer) EncoderForVersion(serializer runtime.Encoder, gv runtime.GroupVersioner) runtime.Encoder {
	return wrapEncoder(s.NegotiatedSerializer.EncoderForVersion(serializer, gv), func(obj runtime.Object, w io.Writer, encode encodeFunc) error {
		return encode(withCoreNames(obj), w)
	})
}

// ownName matches the name of a shared kind or resource, with our group, before the name
// of an object.
var ownName = regexp.MustCompile(`\b(` + strings.Join(coregroup.Names(), "|") + `)(/[a-z]+)?\.` + regexp.QuoteMeta(tenancy.GroupName) + `( ")`)

// withCoreNames returns an error with the names of the core group, and any other object
// as it is.
func withCoreNames(obj runtime.Object) runtime.Object {
	status, ok := obj.(*metav1.Status)
	if !ok || status.Status != metav1.StatusFailure {
		return obj
	}
	status = status.DeepCopy()
	status.Message = ownName.ReplaceAllString(status.Message, "$1$2$3")
	if details := status.Details; details != nil {
		if details.Group == tenancy.GroupName {
			details.Group = coregroup.GroupName
		}
		for i := range details.Causes {
			details.Causes[i].Message = ownName.ReplaceAllString(details.Causes[i].Message, "$1$2$3")
		}
	}
	return status
}
