// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package requestlimits

import (
	"reflect"
	"slices"
	"testing"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/openapi"
)

// TestKeys checks that the length of each key is limited by which server-side apply finds an
// element that contains a list: its errors repeat the key for each error in the list.
func TestKeys(t *testing.T) {
	definitions := openapi.GetOpenAPIDefinitions(func(path string) spec.Ref {
		return spec.MustCreateRef("#/definitions/" + common.EscapeJsonPointer(path))
	})
	checked := map[reflect.Type]bool{}
	var check func(reflect.Type)
	check = func(of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || checked[of] {
			return
		}
		checked[of] = true
		var properties map[string]spec.Schema
		if model, ok := reflect.New(of).Interface().(interface{ OpenAPIModelName() string }); ok {
			properties = definitions[model.OpenAPIModelName()].Schema.Properties
		}
		for _, f := range reflect.VisibleFields(of) {
			check(f.Type)
			keys, ok := properties[jsonName(f)].Extensions["x-kubernetes-list-map-keys"].([]any)
			if !ok || f.Type.Kind() != reflect.Slice || !hasList(f.Type.Elem()) {
				continue
			}
			elem := f.Type.Elem()
			for _, key := range reflect.VisibleFields(elem) {
				if key.Type.Kind() != reflect.String || !slices.Contains(keys, any(jsonName(key))) {
					continue
				}
				owner := elem // or the struct that it embeds
				for _, i := range key.Index[:len(key.Index)-1] {
					owner = owner.Field(i).Type
				}
				if !slices.Contains(names[owner], key.Name) {
					t.Errorf("%s of %s in %s.%s is not limited", key.Name, owner, of, f.Name)
				}
			}
		}
	}
	for _, object := range []any{v1.Pod{}, v1.Namespace{}, v1.LimitRange{}, v1.ResourceQuota{}, v1.NamespaceTemplate{}} {
		check(reflect.TypeOf(object))
	}
	if len(checked) < 100 {
		t.Errorf("only %d types were checked", len(checked))
	}
}

// hasList reports whether a type contains lists.
func hasList(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer:
		return hasList(t.Elem())
	case reflect.Slice:
		return t.Elem().Kind() != reflect.Uint8
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && hasList(f.Type) {
				return true
			}
		}
	}
	return false
}
