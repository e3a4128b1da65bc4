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
// it. It returns nil for invalid YAML. Most of what is sent as YAML is JSON;
// that is returned as it is, except where its "<<" could merge.
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
// replaced, and the bytes of their texts. The decoder's own bound is 400,000 values from
// a few hundred bytes, and it has none for the texts. This reads the document with a
// parser that keeps aliases as what they are.
func checkAliases(data []byte) error {
	var document yamlnode.Node
	if err := yamlnode.Unmarshal(data, &document); err != nil {
		if bytes.IndexByte(data, '&') < 0 {
			return nil // without an anchor, there are no aliases
		}
		// The decoder does not read what follows the first document, and can accept this.
		return &Error{Detail: fmt.Sprintf("the YAML document has aliases and cannot be read: %v", err)}
	}
	counter := aliasCounter{sizes: map[*yamlnode.Node]size{}}
	switch size := counter.size(&document); {
	case !counter.aliases:
	case size.values > MaxYAMLNodes:
		return &Error{Detail: fmt.Sprintf("the YAML document must have at most %d values once its aliases are replaced", MaxYAMLNodes)}
	case size.bytes > len(data)+MaxAliasBytes:
		return &Error{Detail: fmt.Sprintf("the aliases of the YAML document must expand to at most %d bytes of text", MaxAliasBytes)}
	}
	return nil
}

// size is how much is in a node, up to maxSize.
type size struct{ values, bytes int }

// maxSize is above what is allowed, and twice as much is no overflow.
const maxSize = 1 << 30

func (s size) plus(other size) size {
	return size{min(s.values+other.values, maxSize), min(s.bytes+other.bytes, maxSize)}
}

type aliasCounter struct {
	sizes   map[*yamlnode.Node]size // of nodes with an anchor
	aliases bool
}

func (c *aliasCounter) size(n *yamlnode.Node) size {
	if n.Kind == yamlnode.AliasNode {
		c.aliases = true
		return c.size(n.Alias)
	}
	if counted, ok := c.sizes[n]; ok {
		return counted
	}
	if n.Anchor != "" {
		// An alias to what it is in would never end; the decoder refuses it.
		c.sizes[n] = size{values: maxSize}
	}
	total := size{1, len(n.Value)}
	for _, child := range n.Content {
		total = total.plus(c.size(child))
	}
	if n.Anchor != "" {
		c.sizes[n] = total
	}
	return total
}
