// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
)

// Where a field is.
const (
	inRelease = "release"
	inLibrary = "library"
	inBoth    = "both"
	changed   = "both with different types"
)

// compareFields compares the fields that a type of core/v1 has in a release, with
// those of its fields and so on, with those that it has in the library. It returns
// where each is.
func compareFields(releaseAPI, libraryAPI, root string) (map[string]string, error) {
	release, err := fieldsOf(releaseAPI, root)
	if err != nil {
		return nil, err
	}
	library, err := fieldsOf(libraryAPI, root)
	if err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for field, is := range release {
		switch other, found := library[field]; {
		case !found:
			fields[field] = inRelease
		case other != is:
			fields[field] = changed
		default:
			fields[field] = inBoth
		}
	}
	for field := range library {
		if _, found := release[field]; !found {
			fields[field] = inLibrary
		}
	}
	return fields, nil
}

// fieldsOf returns the type of each field, by the names of its struct and of itself in
// JSON.
func fieldsOf(api, root string) (map[string]string, error) {
	files, err := parseDir(token.NewFileSet(), filepath.Join(api, "core", "v1"))
	if err != nil {
		return nil, err
	}
	structs := map[string]*ast.StructType{}
	for _, file := range files {
		ast.Inspect(file.syntax, func(node ast.Node) bool {
			if spec, ok := node.(*ast.TypeSpec); ok {
				if s, ok := spec.Type.(*ast.StructType); ok {
					structs[spec.Name.Name] = s
				}
			}
			return true
		})
	}
	fields := map[string]string{}
	seen := map[string]bool{}
	var visit func(typeName string)
	visit = func(typeName string) {
		if structs[typeName] == nil || seen[typeName] {
			return
		}
		seen[typeName] = true
		for _, field := range structs[typeName].Fields.List {
			fields[typeName+"."+fieldName(field)] = types.ExprString(field.Type)
			ast.Inspect(field.Type, func(node ast.Node) bool {
				if ident, ok := node.(*ast.Ident); ok {
					visit(ident.Name)
				}
				_, qualified := node.(*ast.SelectorExpr)
				return !qualified
			})
		}
	}
	visit(root)
	return fields, nil
}

// fieldName returns the name of a field in JSON, or the type of an embedded one.
func fieldName(field *ast.Field) string {
	if field.Tag != nil {
		if tag, err := strconv.Unquote(field.Tag.Value); err == nil {
			if name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ","); name != "" {
				return name
			}
		}
	}
	return types.ExprString(field.Type)
}
