// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package authentication

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiserverapi "k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	"k8s.io/apiserver/pkg/authentication/cel"
	"k8s.io/apiserver/pkg/server/egressselector"
)

// compiler compiles the expressions in configurations. It is expensive to create.
var compiler = sync.OnceValue(cel.NewDefaultCompiler)

// parseConfig returns a valid authentication configuration. An error is one line with
// the line or the field.
func parseConfig(content []byte, egress egressselector.Lookup) (*apiserverapi.AuthenticationConfiguration, error) {
	if len(content) == 0 {
		return nil, errors.New("the file is empty")
	}
	scheme := runtime.NewScheme()
	install.Install(scheme)
	codecs := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	decoded, err := runtime.Decode(codecs.UniversalDecoder(), content)
	switch {
	case runtime.IsMissingKind(err): // the error has the content
		return nil, errors.New("kind: it must be AuthenticationConfiguration")
	case runtime.IsMissingVersion(err): // the error has the content
		return nil, errors.New("apiVersion: it must be apiserver.config.k8s.io/v1")
	case err != nil:
		return nil, oneLine(err)
	}
	config, ok := decoded.(*apiserverapi.AuthenticationConfiguration)
	if !ok {
		return nil, fmt.Errorf("kind: it must be AuthenticationConfiguration, not %s", reflect.TypeOf(decoded).Elem().Name())
	}
	errs := validation.ValidateAuthenticationConfiguration(compiler(), config, nil)
	if err := append(errs, validateEgress(config, egress)...).ToAggregate(); err != nil {
		return nil, oneLine(err)
	}
	return config, nil
}

// validateEgress checks that there is a way to the issuers. The library checks that
// only when it connects to them.
func validateEgress(config *apiserverapi.AuthenticationConfiguration, egress egressselector.Lookup) (errs field.ErrorList) {
	for i, issuer := range config.JWT {
		if kind := issuer.Issuer.EgressSelectorType; kind != "" && egress == nil {
			path := field.NewPath("jwt").Index(i).Child("issuer", "egressSelectorType")
			errs = append(errs, field.Invalid(path, kind, "it needs --egress-selector-config-file"))
		}
	}
	return errs
}

// oneLine joins the lines of an error. Those about expressions have several.
func oneLine(err error) error {
	if !strings.ContainsAny(err.Error(), "\r\n") {
		return err
	}
	return errors.New(strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), " "))
}
