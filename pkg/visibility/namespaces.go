// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"iter"

	"k8s.io/utils/third_party/forked/golang/btree"
)

// treeDegree is the number of children of a node, as in the library's watch cache.
const treeDegree = 16

// namespaces are the last versions of Namespaces, in the order of their names.
type namespaces struct {
	tree *btree.BTree[named]
	// existing is the number of versions that have not ended.
	existing int64
}

type named struct {
	name    string
	version *version
}

func newNamespaces() *namespaces {
	return &namespaces{tree: btree.New(treeDegree, func(a, b named) bool { return a.name < b.name })}
}

// last returns the last version of a Namespace, or nil.
func (n *namespaces) last(name string) *version {
	found, _ := n.tree.Get(named{name: name})
	return found.version
}

// begin adds a version, which follows the last one of its name.
func (n *namespaces) begin(name string, next *version) {
	next.previous = n.last(name)
	n.tree.ReplaceOrInsert(named{name, next})
	n.existing++
}

// end ends the last version of a Namespace at a position, unless it has ended, and returns
// about how much memory it takes.
func (n *namespaces) end(name string, position int64) int {
	last := n.last(name)
	if last == nil || last.to != 0 {
		return 0
	}
	last.to = position
	n.existing--
	return versionSize + last.bytes
}

// forget removes the versions of a Namespace that have ended at a position or before.
func (n *namespaces) forget(name string, position int64) {
	var next *version
	for v := n.last(name); v != nil; next, v = v, v.previous {
		if v.to == 0 || v.to > position {
			continue
		}
		if next == nil {
			n.tree.Delete(named{name: name})
		} else {
			next.previous = nil
		}
		return
	}
}

// from returns the last versions from a name on.
func (n *namespaces) from(name string) iter.Seq2[string, *version] {
	return func(yield func(string, *version) bool) {
		n.tree.AscendGreaterOrEqual(named{name: name}, func(item named) bool { return yield(item.name, item.version) })
	}
}

// at returns the version of a position: this one, one before, or nil.
func (n *version) at(position int64) *version {
	for ; n != nil; n = n.previous {
		if n.from <= position {
			if n.to == 0 || position < n.to {
				return n
			}
			return nil
		}
	}
	return nil
}
