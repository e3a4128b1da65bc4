// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package unreadable ensures that a stored object that cannot be read does not make
// the other objects of its resource unavailable. The value of such an object cannot
// be decrypted or decoded, because a byte was flipped or an encryption key is
// missing.
//
// In the library, a list or a watch that reads such an object fails, so a watch
// cache never becomes ready, and neither does the server. A Store leaves the object
// out of lists and watches instead. A read or a write of the object by its name
// returns an error with the reason, its name cannot be used again, and a delete with
// ignoreStoreReadErrorWithClusterBreakingPotential removes it. Objects lists the
// objects that cannot be read.
package unreadable

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/pkg/truncate"
)

const (
	// maxLogged is the maximum number of log entries about objects of a resource. If
	// an encryption key is missing, all its objects may be unreadable.
	maxLogged = 100
	// maxReason is the maximum length in bytes of Object.Reason.
	maxReason = 300
)

var gauge = metrics.NewGaugeVec(&metrics.GaugeOpts{
	Namespace:      "borough",
	Subsystem:      "storage",
	Name:           "unreadable_objects",
	Help:           "Stored objects that cannot be decrypted or decoded, and are left out of lists and watches.",
	StabilityLevel: metrics.ALPHA,
}, []string{"group", "resource"})

var register = sync.OnceFunc(func() { legacyregistry.MustRegister(gauge) })

// Object is a stored object that cannot be read.
type Object struct {
	Resource schema.GroupResource
	// Namespace and Name are taken from the key. Namespace is empty for
	// cluster-scoped resources.
	Namespace, Name string
	// Key is the key of the object in etcd.
	Key string
	// Reason is the error of reading it, on one line.
	Reason string

	revision int64 // of the key; 0 if unknown
}

// Objects records the stored objects that a server has tried to read and could not.
// It is safe for concurrent use. Their number is exported as the metric
// borough_storage_unreadable_objects.
type Objects struct {
	mu        sync.RWMutex
	resources map[schema.GroupResource]*resource
}

type resource struct {
	// byNamespace maps a namespace and a name to an object.
	byNamespace map[string]map[string]Object
	count       int
	logged      int
}

// NewObjects returns an empty Objects.
func NewObjects() *Objects {
	register()
	return &Objects{resources: map[schema.GroupResource]*resource{}}
}

// In returns the sorted names of the objects of a resource in a namespace that
// cannot be read.
func (o *Objects) In(gr schema.GroupResource, namespace string) []string {
	o.mu.RLock()
	defer o.mu.RUnlock()
	r := o.resources[gr]
	if r == nil || len(r.byNamespace[namespace]) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(r.byNamespace[namespace]))
}

// AnyIn reports whether an object of a resource in a namespace cannot be read.
func (o *Objects) AnyIn(gr schema.GroupResource, namespace string) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	r := o.resources[gr]
	return r != nil && len(r.byNamespace[namespace]) > 0
}

// Count is the number of objects of a resource that cannot be read.
type Count struct {
	Resource schema.GroupResource
	Objects  int
}

// Counts returns the number of unreadable objects of each resource that has any,
// sorted by resource.
func (o *Objects) Counts() []Count {
	o.mu.RLock()
	defer o.mu.RUnlock()
	var counts []Count
	for gr, r := range o.resources {
		if r.count > 0 {
			counts = append(counts, Count{gr, r.count})
		}
	}
	slices.SortFunc(counts, func(a, b Count) int { return cmp.Compare(a.Resource.String(), b.Resource.String()) })
	return counts
}

// Some returns up to limit objects of a resource that cannot be read, sorted by
// key. If there are more, the choice is arbitrary.
func (o *Objects) Some(gr schema.GroupResource, limit int) []Object {
	o.mu.RLock()
	defer o.mu.RUnlock()
	var some []Object
	if r := o.resources[gr]; r != nil {
	all:
		for _, byName := range r.byNamespace {
			for _, object := range byName {
				if len(some) >= limit {
					break all
				}
				some = append(some, object)
			}
		}
	}
	slices.SortFunc(some, func(a, b Object) int { return cmp.Compare(a.Key, b.Key) })
	return some
}

// add adds a resource, so that its metric exists before any object is unreadable.
func (o *Objects) add(gr schema.GroupResource) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.resources[gr] == nil {
		o.resources[gr] = &resource{byNamespace: map[string]map[string]Object{}}
	}
	gauge.WithLabelValues(gr.Group, gr.Resource).Set(float64(o.resources[gr].count))
}

// any reports whether an object of the resource cannot be read.
func (o *Objects) any(gr schema.GroupResource) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.resources[gr].count > 0
}

// get returns the recorded object, and whether there is one.
func (o *Objects) get(gr schema.GroupResource, namespace, name string) (Object, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	object, ok := o.resources[gr].byNamespace[namespace][name]
	return object, ok
}

// put records an object, and logs it unless it was recorded before.
func (o *Objects) put(logger klog.Logger, object Object) {
	object.Reason = truncate.Line(object.Reason, maxReason)
	o.mu.Lock()
	defer o.mu.Unlock()
	r := o.resources[object.Resource]
	byName := r.byNamespace[object.Namespace]
	if byName == nil {
		byName = map[string]Object{}
		r.byNamespace[object.Namespace] = byName
	}
	recorded, ok := byName[object.Name]
	if ok && object.revision == 0 {
		object.revision = recorded.revision
	}
	byName[object.Name] = object
	if ok {
		return
	}
	r.count++
	gauge.WithLabelValues(object.Resource.Group, object.Resource.Resource).Set(float64(r.count))
	switch r.logged++; {
	case r.logged <= maxLogged:
		logger.Error(nil, "An object cannot be read from storage and is left out of lists and watches", "resource", object.Resource, "key", object.Key, "reason", object.Reason)
	case r.logged == maxLogged+1:
		logger.Error(nil, "More objects cannot be read from storage; they are counted but not logged", "resource", object.Resource, "metric", gauge.FQName())
	}
}

// latest is the revision of what was just read.
const latest = math.MaxInt64

// remove removes the record of an object that can be read, or no longer exists, at the
// revision, unless it is the record of a later one, or its revision is not known yet.
func (o *Objects) remove(logger klog.Logger, gr schema.GroupResource, namespace, name string, revision int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := o.resources[gr]
	byName := r.byNamespace[namespace]
	object, ok := byName[name]
	if !ok || object.revision > revision || object.revision == 0 && revision != latest {
		return
	}
	if delete(byName, name); len(byName) == 0 {
		delete(r.byNamespace, namespace)
	}
	if r.count--; r.count == 0 {
		r.logged = 0
	}
	gauge.WithLabelValues(gr.Group, gr.Resource).Set(float64(r.count))
	logger.V(1).Info("An object that could not be read from storage can be read, or no longer exists", "resource", gr, "key", object.Key)
}
