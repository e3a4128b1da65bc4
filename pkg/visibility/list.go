// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"context"
	"fmt"
	"iter"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/storage"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/authorization/rbac"
)

// maxChunk bounds how many Namespaces a list in pages reads while it holds the lock.
const maxChunk = 10_000

// List returns the Namespaces that the user sees at the revision that the options
// choose, and that the predicate selects. The errors are those of the library: Expired
// for a revision before the history, Timeout with the cause ResourceVersionTooLarge for
// one that is not reached.
func (w *View) List(ctx context.Context, options *metainternalversion.ListOptions, predicate storage.SelectionPredicate) (*tenancy.NamespaceList, error) {
	var namespaces []*tenancy.Namespace
	metadata, err := w.list(ctx, options, predicate, func(n *tenancy.Namespace, _ rbac.Access) { namespaces = append(namespaces, n) })
	if err != nil {
		return nil, err
	}
	// Items that grow would take up to five times the memory of a large list.
	list := &tenancy.NamespaceList{ListMeta: metadata, Items: make([]tenancy.Namespace, len(namespaces))}
	for i, n := range namespaces {
		list.Items[i] = *n
	}
	return list, nil
}

// Stored returns the options with which the store of the Namespaces lists what is before
// the history of the views, or nil if it must not: the user has to see all of them now,
// and to have seen all in the list that continues. What else the user saw is not known
// any more.
func (w *View) Stored(options *metainternalversion.ListOptions) *metainternalversion.ListOptions {
	if options.Continue == "" {
		if w.all {
			return options
		}
		return nil
	}
	first, err := decodeContinue(options.Continue)
	if err != nil || !w.seesAll() || !w.all && !first.all {
		return nil
	}
	stored := *options
	if stored.Continue, err = storage.EncodeContinue(keyPrefix+first.name, keyPrefix, first.revision); err != nil {
		return nil
	}
	return &stored
}

// seesAll reports whether the user sees all Namespaces at the position that is reached.
func (w *View) seesAll() bool {
	w.views.mu.RLock()
	defer w.views.mu.RUnlock()
	return w.rights(w.views.reached).All
}

// list calls add with the Namespaces of a list and, if the view shows it, the user's
// access. What it has added is of no use if it returns an error.
func (w *View) list(ctx context.Context, options *metainternalversion.ListOptions, predicate storage.SelectionPredicate, add func(*tenancy.Namespace, rbac.Access)) (list metav1.ListMeta, err error) {
	first, err := w.choose(ctx, options)
	if err != nil {
		return list, err
	}
	position := w.locate(&first)
	var rights rbac.ClusterRights
	if w.asProjects {
		rights = w.rights(position)
	}
	size := 0
	if predicate.Empty() && options.Limit > 0 {
		size = int(min(options.Limit, maxChunk)) + 1 // the list continues with the last one
	}
	passed, added := int64(0), int64(0)
	for name, version := range w.from(first.name, position, size) {
		if options.Limit > 0 && added == options.Limit {
			next := continueToken{name, first.revision, unknown, w.rights(position).All}
			if predicate.Empty() {
				// The number in a token can be too small: the position of a page that is
				// continued can be later than that of the first.
				if first.rest <= passed {
					first.rest = w.count(first.name, position)
				}
				next.rest = first.rest - passed
				list.RemainingItemCount = &next.rest
			}
			if list.Continue, err = next.encode(); err != nil {
				return list, apierrors.NewInternalError(fmt.Errorf("encode a continue token: %w", err))
			}
			break
		}
		passed++
		if err := context.Cause(ctx); err != nil {
			return list, err
		}
		namespace := version.decode(name)
		if namespace == nil {
			continue
		}
		if selected, err := predicate.Matches(namespace); err != nil {
			return list, apierrors.NewInternalError(err)
		} else if selected {
			var access rbac.Access
			if w.asProjects {
				_, access = w.sees(name, position, &rights)
			}
			add(namespace, access)
			added++
		}
	}
	if w.views.lost(position) {
		return list, newListExpired(options.Continue, first.name)
	}
	list.ResourceVersion = fmt.Sprint(first.revision)
	return list, nil
}

// choose returns where a list begins, as a token does. Its revision is 0 if it is the one
// that is reached.
func (w *View) choose(ctx context.Context, options *metainternalversion.ListOptions) (first continueToken, err error) {
	v := w.views
	if options.Continue != "" {
		if options.ResourceVersion != "" && options.ResourceVersion != "0" {
			return first, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
		}
		first, err := decodeContinue(options.Continue)
		if err != nil {
			return first, err
		}
		if first.revision < 0 {
			return continueToken{first.name, 0, unknown, false}, v.AwaitCurrent(ctx)
		}
		return first, v.awaitRevision(ctx, first.revision)
	}
	asked, err := v.awaitResourceVersion(ctx, options.ResourceVersion)
	if err != nil {
		return first, err
	}
	first = continueToken{rest: unknown}
	// Without a match, a limit means the exact revision, for compatibility.
	if options.ResourceVersionMatch == metav1.ResourceVersionMatchExact || options.ResourceVersionMatch == "" && options.Limit > 0 {
		first.revision = asked
	}
	return first, nil
}

// locate returns the position of the beginning of a list, whose revision it sets to the one that is reached
// if it is 0.
func (w *View) locate(first *continueToken) (position int64) {
	v := w.views
	v.mu.RLock()
	defer v.mu.RUnlock()
	if first.revision != 0 {
		_, position = v.positionsOf(first.revision)
		return position
	}
	first.revision = v.revisionAt(v.reached)
	if first.name == "" && w.rights(v.reached).All {
		first.rest = v.namespaces.existing
	}
	return v.reached
}

// from returns the Namespaces that the user sees at a position, from a name on, sorted. It
// reads size of them at a time, or all if size is 0, and does not hold the lock between.
func (w *View) from(name string, position int64, size int) iter.Seq2[string, *version] {
	return func(yield func(string, *version) bool) {
		for {
			w.views.mu.RLock()
			chunk := w.seen(name, position, size)
			w.views.mu.RUnlock()
			for _, n := range chunk {
				if !yield(n.name, n.version) {
					return
				}
			}
			if size == 0 || len(chunk) < size {
				return
			}
			name = chunk[len(chunk)-1].name + "\x00"
		}
	}
}

// seen returns the Namespaces that the user sees at a position, from a name on, sorted,
// but not more than size, unless it is 0. The lock is held.
func (w *View) seen(from string, position int64, size int) []named {
	var seen []named
	add := func(name string, version *version) bool {
		if version != nil {
			seen = append(seen, named{name, version})
		}
		return size == 0 || len(seen) < size
	}
	for !w.all {
		names, all := w.views.index.Visible(w.subjects, from, position, size)
		if all {
			break
		}
		for _, name := range names {
			if !add(name, w.views.namespaces.at(name, position)) { // a ClusterRole may name one that does not exist
				return seen
			}
		}
		if size == 0 || len(names) < size {
			return seen
		}
		from = names[size-1] + "\x00"
	}
	if size > 0 {
		seen = slices.Grow(seen, int(min(int64(size), w.views.namespaces.existing)))
	}
	for name, last := range w.views.namespaces.from(from) {
		if !add(name, w.views.namespaces.past.At(name, last, position)) {
			break
		}
	}
	return seen
}

// count returns the number of Namespaces that the user sees at a position, from a name on.
func (w *View) count(from string, position int64) int64 {
	w.views.mu.RLock()
	defer w.views.mu.RUnlock()
	return int64(len(w.seen(from, position, 0)))
}
