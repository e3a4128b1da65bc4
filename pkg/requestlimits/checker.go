// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package requestlimits

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Checker checks the bodies of requests. What it returns is an *Error, or nil
// for what is within the limits and for what a decoder refuses at little cost.
type Checker struct {
	// any is what objects of all kinds have together. A body in JSON may name its
	// kind anywhere, or be a patch and not name it.
	any *shape
	// kinds are the shapes of objects that protobuf encodes.
	kinds map[schema.GroupVersionKind]*shape
}

// NewChecker returns a Checker for all kinds of the scheme, which are those that a
// decoder accepts.
func NewChecker(scheme *runtime.Scheme) *Checker {
	c := &Checker{kinds: map[schema.GroupVersionKind]*shape{}}
	known := shapes{}
	for gvk, t := range scheme.AllKnownTypes() {
		s := known.of(t)
		c.any = union(c.any, s)
		c.kinds[gvk] = s
	}
	return c
}

// CheckFunc checks an object. What its encoding does not say of its kind is as in defaults.
type CheckFunc func(data []byte, defaults schema.GroupVersionKind) error

// CheckFor returns the check for objects in a media type, or nil if they cannot be checked.
func (c *Checker) CheckFor(mediaType string) CheckFunc {
	switch mediaType {
	case runtime.ContentTypeJSON:
		return func(data []byte, _ schema.GroupVersionKind) error { return c.CheckJSON(data) }
	case runtime.ContentTypeYAML:
		return func(data []byte, _ schema.GroupVersionKind) error { return c.CheckYAML(data) }
	case runtime.ContentTypeProtobuf:
		return c.CheckProtobuf
	}
	return nil
}

// CheckJSON checks an object in JSON.
func (c *Checker) CheckJSON(data []byte) error {
	_, err := walkJSON(data, c.any)
	return named(err, "the object")
}

// CheckMergePatch checks a merge patch.
func (c *Checker) CheckMergePatch(data []byte) error {
	_, err := walkJSONPatch(data, c.any)
	return named(err, "the merge patch")
}

// CheckYAML checks an object in YAML, or an apply configuration.
func (c *Checker) CheckYAML(data []byte) error {
	converted, err := toJSON(data)
	if err != nil {
		return err
	}
	return c.CheckJSON(converted)
}

// jsonPatch is the shape of a JSON patch. What its values are to become, only the
// patched object shows.
var jsonPatch = &shape{list: true, max: MaxPatchOperations}

// CheckJSONPatch checks a JSON patch. The patched object has to be checked as
// well.
func (c *Checker) CheckJSONPatch(data []byte) error {
	_, err := walkJSONPatch(data, jsonPatch)
	return named(err, "the JSON patch")
}

// named returns the error with the name of what was checked, if it is about all of that
// and not about a field.
func named(err error, name string) error {
	if limit, ok := err.(*Error); ok && limit.Path == "" {
		return &Error{Detail: name + " " + limit.Detail}
	}
	return err
}

// CheckStrategicMergePatch checks a strategic merge patch.
func (c *Checker) CheckStrategicMergePatch(data []byte) error {
	elements, err := walkJSONPatch(data, c.any)
	if err != nil {
		return named(err, "the strategic merge patch")
	}
	if elements > MaxPatchElements {
		return &Error{Detail: fmt.Sprintf("the lists of a strategic merge patch must have at most %d elements together", MaxPatchElements)}
	}
	return nil
}

// protobufPrefix precedes an object in protobuf, which is wrapped in a
// runtime.Unknown.
var protobufPrefix = []byte("k8s\x00")

// CheckProtobuf checks an object in protobuf. What it does not say of its kind
// is as in defaults.
func (c *Checker) CheckProtobuf(data []byte, defaults schema.GroupVersionKind) error {
	raw, found := bytes.CutPrefix(data, protobufPrefix)
	if !found {
		return nil
	}
	var object runtime.Unknown
	if err := object.Unmarshal(raw); err != nil {
		return nil
	}
	gvk := object.GroupVersionKind()
	if gvk.Kind == "" {
		gvk.Kind = defaults.Kind
	}
	if gvk.Version == "" {
		gvk.Group, gvk.Version = defaults.Group, defaults.Version
	}
	s := c.kinds[gvk]
	if s == nil {
		return nil
	}
	return walkProtobuf(object.Raw, s)
}
