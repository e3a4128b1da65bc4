// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package requestlimits

import (
	"bytes"
	"encoding/json"
	"fmt"

	yamlnode "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// toJSON converts YAML as the decoder does, unless its aliases make too much of
// it. It returns nil for what is no YAML. Most of what is sent as YAML is JSON;
// that is returned as it is, save where its "<<" could merge.
func toJSON(data []byte) ([]byte, error) {
	if !bytes.Contains(data, []byte("<<")) && json.Valid(data) {
		return data, nil
	}
	if bytes.IndexByte(data, '*') >= 0 {
		if err := checkAliases(data); err != nil {
			return nil, err
		}
	}
	converted, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, nil
	}
	return converted, nil
}

// checkAliases counts the values that a document has once its aliases are
// replaced. The decoder's own bound is 400,000 from a few hundred bytes. This
// reads the document with a parser that keeps aliases as what they are.
func checkAliases(data []byte) error {
	var document yamlnode.Node
	if err := yamlnode.Unmarshal(data, &document); err != nil {
		return nil
	}
	counter := aliasCounter{sizes: map[*yamlnode.Node]int{}}
	if size := counter.size(&document); counter.aliases && size > MaxYAMLNodes {
		return &Error{Detail: fmt.Sprintf("the YAML document must have at most %d values once its aliases are replaced", MaxYAMLNodes)}
	}
	return nil
}

type aliasCounter struct {
	sizes   map[*yamlnode.Node]int // of nodes with an anchor
	aliases bool
}

// size counts the values of a node up to MaxYAMLNodes and one.
func (c *aliasCounter) size(n *yamlnode.Node) int {
	if n.Kind == yamlnode.AliasNode {
		c.aliases = true
		return c.size(n.Alias)
	}
	if size, counted := c.sizes[n]; counted {
		return size
	}
	if n.Anchor != "" {
		// An alias to what it is in would never end; the decoder refuses it.
		c.sizes[n] = MaxYAMLNodes + 1
	}
	size := 1
	for _, child := range n.Content {
		size = min(size+c.size(child), MaxYAMLNodes+1)
	}
	if n.Anchor != "" {
		c.sizes[n] = size
	}
	return size
}
