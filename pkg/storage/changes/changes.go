// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package changes follows all objects of several resources in the one order of etcd's
// revisions. A watch cache of the library follows one resource; the caches of two
// resources are at different revisions.
//
// A Feed has one watch of etcd, over the range of keys from the first to the last of
// its resources. etcd sends the changes of a range in the order of their revisions,
// and all of a revision together. Keys between those of the resources are skipped.
package changes

import (
	"errors"
	"iter"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/borough-io/borough/pkg/storage/stored"

	"k8s.io/apimachinery/pkg/runtime"
)

// Change is a change of one object.
type Change struct {
	Resource *stored.Resource
	// Namespace is empty for cluster-scoped resources.
	Namespace, Name string
	// Revision is the one that has changed the object.
	Revision int64
	// Value is what Codec of the resource decodes. It is nil if the object was
	// deleted, or cannot be decrypted.
	Value []byte
}

// Sink receives the objects and their changes. Decoded and Deleted are called from
// any goroutine, all others from one.
type Sink interface {
	// Reset replaces everything by the objects at a revision. It is called first, when
	// the changes since the last call are not known any more, and when objects that
	// could not be decrypted can be. The revision is higher than those before. The objects
	// can be read more than once.
	Reset(revision int64, objects iter.Seq[Change])
	// Apply makes all changes of a revision, which is higher than those before.
	Apply(revision int64, changes []Change)
	// Advance is called when there are no further changes until a revision.
	Advance(revision int64)
	// Decoded is called with an object that the server has decoded, with the
	// resourceVersion at which it was written: before or after that change, and not
	// for each change. The object must not be modified.
	Decoded(obj runtime.Object)
	// Deleted is called like Decoded with an object that was deleted, with the
	// resourceVersion of that change.
	Deleted(obj runtime.Object)
}

// Source is where a Feed reads.
type Source struct {
	// Connect returns a client of the etcd that has all the resources, and a function
	// that releases it.
	Connect func() (client *clientv3.Client, release func(), err error)
	// Resources are those to follow.
	Resources []stored.Resource
	// BeginKey is a key that the feed writes before it reads all objects, if its next
	// revision has to be higher than those before. It is outside of the resources.
	BeginKey string
}

// check returns an error if the source is not usable.
func (s *Source) check() error {
	if s.Connect == nil || len(s.Resources) == 0 {
		return errors.New("the feed of changes has no source")
	}
	return nil
}

// keys returns the range of keys of the resources.
func (s *Source) keys() (first, end string) {
	for _, r := range s.Resources {
		if first == "" || r.Prefix < first {
			first = r.Prefix
		}
		end = max(end, clientv3.GetPrefixRangeEnd(r.Prefix))
	}
	return first, end
}

// split returns the resource, namespace and name of a key, and false if it is of none
// of the resources.
func (s *Source) split(key string) (r *stored.Resource, namespace, name string, ok bool) {
	for i := range s.Resources {
		if rest, found := strings.CutPrefix(key, s.Resources[i].Prefix); found {
			namespace, name, namespaced := strings.Cut(rest, "/")
			if !namespaced {
				namespace, name = "", rest
			}
			return &s.Resources[i], namespace, name, true
		}
	}
	return nil, "", "", false
}
