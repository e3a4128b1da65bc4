// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"iter"
	"sort"

	"k8s.io/utils/third_party/forked/golang/btree"
)

// treeDegree is the number of children of a node, as in the library's watch cache.
const treeDegree = 16

// namespaces are the versions of Namespaces.
type namespaces struct {
	// tree has the last versions, in the order of the names.
	tree *btree.BTree[named]
	// past has the versions before the last, in their order, by name. Few Namespaces have
	// any.
	past map[string][]*version
	// existing is the number of versions that have not ended.
	existing int64
}

type named struct {
	name    string
	version *version
}

func newNamespaces() *namespaces {
	return &namespaces{tree: btree.New(treeDegree, func(a, b named) bool { return a.name < b.name }), past: map[string][]*version{}}
}

// last returns the last version of a Namespace, or nil.
func (n *namespaces) last(name string) *version {
	found, _ := n.tree.Get(named{name: name})
	return found.version
}

// begin adds a version, which follows the last one of its name.
func (n *namespaces) begin(name string, next *version) {
	if last, found := n.tree.ReplaceOrInsert(named{name, next}); found {
		n.past[name] = append(n.past[name], last.version)
	}
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
	past := n.past[name]
	for len(past) > 0 && past[0].to <= position {
		past[0] = nil
		past = past[1:]
	}
	if len(past) > 0 {
		n.past[name] = past
		return
	}
	delete(n.past, name)
	if last := n.last(name); last != nil && last.to != 0 && last.to <= position {
		n.tree.Delete(named{name: name})
	}
}

// from returns the last versions from a name on.
func (n *namespaces) from(name string) iter.Seq2[string, *version] {
	return func(yield func(string, *version) bool) {
		n.tree.AscendGreaterOrEqual(named{name: name}, func(item named) bool { return yield(item.name, item.version) })
	}
}

// at returns the version of a Namespace, whose last version may be nil, at a position, or
// nil.
func (n *namespaces) at(name string, last *version, position int64) *version {
	v := last
	if v != nil && v.from > position {
		past := n.past[name]
		later := sort.Search(len(past), func(i int) bool { return past[i].from > position })
		if later == 0 {
			return nil
		}
		v = past[later-1]
	}
	if v == nil || v.to != 0 && v.to <= position {
		return nil
	}
	return v
}
