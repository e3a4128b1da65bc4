// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package authentication

import (
	"errors"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"
	apiserverapi "k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	"k8s.io/apiserver/pkg/authentication/cel"
	"k8s.io/apiserver/pkg/server/egressselector"

	"github.com/borough-io/borough/pkg/configfile"
)

// compiler compiles the expressions in configurations. It is expensive to create.
var compiler = sync.OnceValue(cel.NewDefaultCompiler)

// parseConfig returns a valid authentication configuration. An error is one line with
// the line or the field.
func parseConfig(content []byte, egress egressselector.Lookup) (*apiserverapi.AuthenticationConfiguration, error) {
	config, err := configfile.Decode[apiserverapi.AuthenticationConfiguration](content)
	if err != nil {
		return nil, oneLine(err)
	}
	errs := validation.ValidateAuthenticationConfiguration(compiler(), config, nil)
	if err := append(errs, validateEgress(config, egress)...).ToAggregate(); err != nil {
		return nil, oneLine(err)
	}
	return config, nil
}

// egressTypes are the types of egress selector that an issuer can have. The library refuses
// others.
var egressTypes = map[apiserverapi.EgressSelectorType]egressselector.EgressType{
	apiserverapi.EgressSelectorControlPlane: egressselector.ControlPlane,
	apiserverapi.EgressSelectorCluster:      egressselector.Cluster,
}

// validateEgress checks that there is a way to the issuers. The library checks that
// only when it connects to them.
func validateEgress(config *apiserverapi.AuthenticationConfiguration, egress egressselector.Lookup) (errs field.ErrorList) {
	for i, issuer := range config.JWT {
		kind := issuer.Issuer.EgressSelectorType
		selection, ok := egressTypes[kind]
		if !ok {
			continue
		}
		path := field.NewPath("jwt").Index(i).Child("issuer", "egressSelectorType")
		if egress == nil {
			errs = append(errs, field.Invalid(path, kind, "it needs --egress-selector-config-file"))
		} else if dial, err := egress(selection.AsNetworkContext()); err != nil {
			errs = append(errs, field.Invalid(path, kind, err.Error()))
		} else if dial == nil {
			errs = append(errs, field.Invalid(path, kind, "the file of --egress-selector-config-file has no selection of that name"))
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
