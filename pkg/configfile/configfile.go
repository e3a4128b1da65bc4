// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package configfile decodes configuration files of the group apiserver.config.k8s.io, as
// the library does, with errors that do not have the content of the file.
package configfile

import (
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
)

// Decode returns the configuration in the content of a file. It returns an error if the content
// is of another kind than T, or has an unknown field. Unlike the library, it refuses content
// without a kind.
func Decode[T apiserver.AdmissionConfiguration | apiserver.AuthenticationConfiguration](content []byte) (*T, error) {
	if len(content) == 0 {
		return nil, errors.New("the file is empty")
	}
	scheme := runtime.NewScheme()
	install.Install(scheme)
	kind := reflect.TypeFor[T]().Name()
	decoded, err := runtime.Decode(serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(), content)
	switch {
	case runtime.IsMissingKind(err): // the error has the content
		return nil, fmt.Errorf("the kind must be %s", kind)
	case runtime.IsMissingVersion(err): // the error has the content
		return nil, errors.New("the apiVersion must be apiserver.config.k8s.io/v1")
	case err != nil:
		return nil, err
	}
	config, ok := any(decoded).(*T)
	if !ok {
		return nil, fmt.Errorf("the kind must be %s, not %s", kind, reflect.TypeOf(decoded).Elem().Name())
	}
	return config, nil
}
