// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"iter"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/third_party/forked/golang/btree"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/history"
	"github.com/borough-io/borough/pkg/storage/stored"
)

// treeDegree is the number of children of a node, as in the library's watch cache.
const treeDegree = 16

// namespaces are the versions of Namespaces.
type namespaces struct {
	// tree has the last versions, in the order of the names.
	tree *btree.BTree[named]
	// past has the versions before the last, by name.
	past history.Past[string, *version]
	// existing is the number of versions that have not ended.
	existing int64
}

type named struct {
	name    string
	version *version
}

func newNamespaces() *namespaces {
	return &namespaces{tree: btree.New(treeDegree, func(a, b named) bool { return a.name < b.name }), past: history.Past[string, *version]{}}
}

// last returns the last version of a Namespace, or nil.
func (n *namespaces) last(name string) *version {
	found, _ := n.tree.Get(named{name: name})
	return found.version
}

// at returns the version of a Namespace at a position, or nil.
func (n *namespaces) at(name string, position int64) *version {
	return n.past.At(name, n.last(name), position)
}

// begin adds a version, which follows the last one of its name.
func (n *namespaces) begin(name string, next *version) {
	if last, found := n.tree.ReplaceOrInsert(named{name, next}); found {
		n.past.Add(name, last.version)
	}
	n.existing++
}

// end ends the last version of a Namespace at a position, unless it has ended, and returns
// about how much memory it takes.
func (n *namespaces) end(name string, position int64) int {
	last := n.last(name)
	if last == nil || last.To != 0 {
		return 0
	}
	last.To = position
	n.existing--
	return versionSize + last.bytes
}

// trim removes the versions of a Namespace that have ended at a position or before.
func (n *namespaces) trim(name string, position int64) {
	if n.past.Trim(name, n.last(name), position) {
		n.tree.Delete(named{name: name})
	}
}

// from returns the last versions from a name on.
func (n *namespaces) from(name string) iter.Seq2[string, *version] {
	return func(yield func(string, *version) bool) {
		n.tree.AscendGreaterOrEqual(named{name: name}, func(item named) bool { return yield(item.name, item.version) })
	}
}

// version is a version of a Namespace.
type version struct {
	history.Lifetime
	revision int64 // of etcd
	bytes    int   // of the stored value
	content  atomic.Pointer[content]
	resource *stored.Resource
}

// content is a Namespace: decoded, as the watch cache has it, too, or its stored value.
type content struct {
	decoded *tenancy.Namespace
	value   []byte
}

// decode returns the Namespace, or nil if it cannot be read. The stores of the resource
// log and count what cannot be read. It must not be modified.
func (n *version) decode(name string) *tenancy.Namespace {
	content := n.content.Load()
	if content.decoded != nil {
		return content.decoded
	}
	obj, err := runtime.Decode(n.resource.Codec, content.value)
	if err != nil {
		return nil
	}
	namespace, ok := obj.(*tenancy.Namespace)
	if !ok || namespace.Name != name {
		return nil
	}
	setRevision(namespace, n.revision)
	return namespace
}
