// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// openapi-schema prints the OpenAPI v2 definitions of the API types, which the
// generator of the apply configurations reads field ownership from.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/borough-io/borough/pkg/generated/openapi"
)

func main() {
	if err := json.NewEncoder(os.Stdout).Encode(schema()); err != nil {
		fmt.Fprintf(os.Stderr, "openapi-schema: write the schema: %v\n", err)
		os.Exit(1)
	}
}

func schema() *spec.Swagger {
	swagger := &spec.Swagger{}
	swagger.Swagger = "2.0"
	swagger.Info = &spec.Info{InfoProps: spec.InfoProps{Title: "Borough", Version: "v1"}}
	swagger.Definitions = spec.Definitions{}
	ref := func(name string) spec.Ref { return spec.MustCreateRef("#/definitions/" + name) }
	for name, definition := range openapi.GetOpenAPIDefinitions(ref) {
		swagger.Definitions[name] = definition.Schema
		// A type may carry another schema for v2, where v2 can't say the same.
		if v2, ok := definition.Schema.Extensions[common.ExtensionV2Schema].(spec.Schema); ok {
			swagger.Definitions[name] = v2
		}
	}
	return swagger
}
