// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// unknown is the state of a gate that a release does not have.
const unknown = "unknown"

// gateStates returns the state of every gate of a release by default, such as
// "off alpha".
func gateStates(r release) (map[string]string, error) {
	emulated, err := version.Parse(r.version)
	if err != nil {
		return nil, fmt.Errorf("version %s: %w", r.version, err)
	}
	states := map[string]string{}
	for _, dir := range []string{r.apiserver, r.kubernetes} { // the latter may override the former
		files, err := parseDir(token.NewFileSet(), filepath.Join(dir, "pkg", "features"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			ast.Inspect(file.syntax, func(node ast.Node) bool {
				gate, ok := node.(*ast.KeyValueExpr)
				if !ok {
					return true
				}
				specs, ok := gate.Value.(*ast.CompositeLit)
				if !ok {
					return true
				}
				for _, spec := range specs.Elts {
					if state, ok := stateSince(spec, emulated); ok {
						states[lastName(gate.Key)] = state
					}
				}
				return true
			})
		}
	}
	return states, nil
}

// stateSince reads an element of featuregate.VersionedSpecs. It reports false if the
// expression is something else, or is about later releases.
func stateSince(expr ast.Expr, emulated *version.Version) (state string, ok bool) {
	spec, isLiteral := expr.(*ast.CompositeLit)
	if !isLiteral {
		return "", false
	}
	var since, byDefault, stage string
	for _, element := range spec.Elts {
		field, isField := element.(*ast.KeyValueExpr)
		if !isField {
			return "", false
		}
		switch lastName(field.Key) {
		case "Version":
			if call, isCall := field.Value.(*ast.CallExpr); isCall && len(call.Args) == 1 {
				if literal, isLiteral := call.Args[0].(*ast.BasicLit); isLiteral {
					since, _ = strconv.Unquote(literal.Value)
				}
			}
		case "Default":
			byDefault = lastName(field.Value)
		case "PreRelease":
			stage = strings.ToLower(lastName(field.Value))
		}
	}
	first, err := version.ParseGeneric(since)
	if err != nil || !emulated.AtLeast(first) {
		return "", false
	}
	switch byDefault {
	case "true":
		return "on " + stage, true
	case "false":
		return "off " + stage, true
	}
	return "", false
}

// lastName returns the identifier of an expression, without the package.
func lastName(expr ast.Expr) string {
	switch expr := expr.(type) {
	case *ast.SelectorExpr:
		return expr.Sel.Name
	case *ast.Ident:
		return expr.Name
	}
	return ""
}
