// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifest reads Pods from YAML and JSON.
package manifest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	yamlnode "go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/requestlimits"
	"github.com/borough-io/borough/pkg/source"
)

// ErrEmpty is returned for data of no bytes. A program that writes a file truncates it
// first, so an empty file does not mean that there are no Pods.
var ErrEmpty = errors.New("is empty; to have no Pods, remove it, or write a PodList without items")

// Remaining is what other files of a source leave of its limits.
type Remaining struct{ Pods, Documents int }

// NewRemaining returns the limits of a source of which nothing was read.
func NewRemaining() *Remaining { return &Remaining{source.MaxPods, source.MaxDocuments} }

// Parse returns the Pods of a file: documents in YAML or JSON, each of which is a Pod, a
// PodList or a List of Pods, of the core group or of tenancy.borough.io/v1. It returns them
// as the latter, with the fields that a user sets, and whether the data is blank: it then has
// neither a Pod nor a list, but only comments, null or white space. Names are required, and
// must differ. It returns an error if there is more than what remains, and subtracts the
// documents that it has read, and the Pods that it returns.
func Parse(data []byte, remaining *Remaining) (pods []*unstructured.Unstructured, blank bool, err error) {
	if len(data) == 0 {
		return nil, false, ErrEmpty
	}
	p := parser{max: remaining.Pods, names: map[string]bool{}}
	next := documents(data)
	for i := 1; ; i++ {
		document, err := next()
		switch {
		case err == io.EOF:
			remaining.Pods -= len(p.pods)
			return p.pods, !p.found, nil
		case remaining.Documents == 0:
			return nil, false, fmt.Errorf("the source has more than %d documents", source.MaxDocuments)
		}
		remaining.Documents--
		if err == nil {
			err = p.add(document)
		}
		if err != nil {
			return nil, false, fmt.Errorf("document %d: %w", i, err)
		}
	}
}

// documents returns a function that returns the next document, or io.EOF.
func documents(data []byte) func() ([]byte, error) {
	if isJSONStream(data) {
		decoder := json.NewDecoder(bytes.NewReader(data))
		return func() ([]byte, error) {
			var document json.RawMessage
			err := decoder.Decode(&document)
			return document, err
		}
	}
	// The reader ignores a last line that is not terminated if its length is a multiple of the
	// size of the buffer, such as that of one that was cut off.
	terminated := io.Reader(bytes.NewReader(data))
	if !bytes.HasSuffix(data, []byte("\n")) {
		terminated = io.MultiReader(terminated, strings.NewReader("\n"))
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(terminated))
	return func() ([]byte, error) {
		for {
			document, err := reader.Read()
			if err != nil || len(bytes.TrimSpace(document)) > 0 {
				return document, err
			}
		}
	}
}

// isJSONStream reports whether the data begins with an object in JSON that no separator of
// YAML follows. YAML can begin with a brace, too.
func isJSONStream(data []byte) bool {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return false
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	var first json.RawMessage
	if decoder.Decode(&first) != nil {
		return false
	}
	return !bytes.HasPrefix(bytes.TrimSpace(data[decoder.InputOffset():]), []byte("---"))
}

// checker returns the checker of what a document costs when it is decoded.
var checker = sync.OnceValue(func() *requestlimits.Checker {
	scheme := runtime.NewScheme()
	// They fail only for types that the scheme has already.
	_ = corev1.AddToScheme(scheme)
	_ = v1.AddToScheme(scheme)
	return requestlimits.NewChecker(scheme)
})

type parser struct {
	max   int
	names map[string]bool
	pods  []*unstructured.Unstructured
	found bool // a Pod or a list, which can be empty
}

func (p *parser) add(document []byte) error {
	var err error
	// As YAML, some JSON is invalid: half of a character in an escape.
	if json.Valid(document) {
		err = checker().CheckJSON(document)
	} else if err = checkOneDocument(document); err == nil {
		document, err = yaml.YAMLToJSONStrict(document)
	}
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	if bytes.Equal(bytes.TrimSpace(document), []byte("null")) {
		return nil // only comments
	}
	p.found = true
	duplicates, err := kjson.UnmarshalStrict(document, &object.Object, kjson.DisallowDuplicateFields)
	switch {
	case err != nil:
		return errors.New("is not an object")
	case len(duplicates) > 0:
		return duplicates[0]
	}
	return p.addObject(object)
}

// checkOneDocument checks what the document costs, and returns an error if another follows it
// without a separator: the decoder would ignore that, and its Pods would be deleted.
func checkOneDocument(document []byte) error {
	if err := checker().CheckYAML(document); err != nil {
		return err
	}
	decoder := yamlnode.NewDecoder(bytes.NewReader(document))
	var node yamlnode.Node
	if decoder.Decode(&node) != nil {
		return nil // which the other decoder reports
	}
	if err := decoder.Decode(&node); !errors.Is(err, io.EOF) {
		return errors.New("has content after its end: separate documents with ---")
	}
	return nil
}

func (p *parser) addObject(object *unstructured.Unstructured) error {
	apiVersion, kind := object.GetAPIVersion(), object.GetKind()
	known := apiVersion == "v1" || apiVersion == v1.SchemeGroupVersion.String()
	switch {
	case known && kind == "Pod":
		return p.addPod(object)
	case known && kind == "PodList", apiVersion == "v1" && kind == "List":
		// A server has more Pods than those of a page, which would be deleted.
		if token, _, _ := unstructured.NestedString(object.Object, "metadata", "continue"); token != "" {
			return errors.New("metadata.continue: must not be set: the list is not complete")
		}
		items, ok := object.Object["items"].([]any)
		if !ok && object.Object["items"] != nil {
			return errors.New("items: must be a list")
		}
		for i, item := range items {
			fields, ok := item.(map[string]any)
			if !ok {
				return fmt.Errorf("items[%d]: is not an object", i)
			}
			pod := &unstructured.Unstructured{Object: fields}
			if pod.GetKind() == "" && pod.GetAPIVersion() == "" && kind == "PodList" {
				pod.SetAPIVersion(apiVersion)
				pod.SetKind("Pod")
			}
			if pod.GetKind() != "Pod" || pod.GetAPIVersion() != "v1" && pod.GetAPIVersion() != v1.SchemeGroupVersion.String() {
				return fmt.Errorf("items[%d]: %w", i, notPod(pod))
			}
			if err := p.addPod(pod); err != nil {
				return fmt.Errorf("items[%d]: %w", i, err)
			}
		}
		return nil
	}
	return notPod(object)
}

func notPod(object *unstructured.Unstructured) error {
	return fmt.Errorf("apiVersion %.100q, kind %.100q: must be a Pod or a list of Pods of v1 or %s", object.GetAPIVersion(), object.GetKind(), v1.SchemeGroupVersion)
}

// addPod keeps of a Pod what a user sets.
func (p *parser) addPod(object *unstructured.Unstructured) error {
	metadata, ok := object.Object["metadata"].(map[string]any)
	if !ok {
		return errors.New("metadata: must be an object")
	}
	kept := map[string]any{}
	for _, field := range []string{"name", "labels", "annotations", "finalizers"} {
		if value := metadata[field]; value != nil {
			kept[field] = value
		}
	}
	name, ok := kept["name"].(string)
	if !ok || name == "" {
		return errors.New("metadata.name: must be a string that is not empty")
	}
	for _, field := range []string{"labels", "annotations"} {
		if _, _, err := unstructured.NestedStringMap(kept, field); err != nil {
			return fmt.Errorf("metadata.%s: must be an object whose values are strings", field)
		}
	}
	spec, ok := object.Object["spec"].(map[string]any)
	if !ok {
		return errors.New("spec: must be an object")
	}
	if p.names[name] {
		return fmt.Errorf("metadata.name: there are two Pods %.253q", name)
	}
	if len(p.pods) == p.max {
		return fmt.Errorf("the source has more than %d Pods", source.MaxPods)
	}
	p.names[name] = true
	p.pods = append(p.pods, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1.SchemeGroupVersion.String(),
		"kind":       "Pod",
		"metadata":   kept,
		"spec":       spec,
	}})
	return nil
}
