// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/storage"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/authorization/rbac"
)

// List returns the Namespaces that the user sees at the revision that the options
// choose, and that the predicate selects. The errors are those of the library: Expired
// for a revision before the history, Timeout with the cause ResourceVersionTooLarge for
// one that is not reached.
func (w *View) List(ctx context.Context, options *metainternalversion.ListOptions, predicate storage.SelectionPredicate) (*tenancy.NamespaceList, error) {
	list := &tenancy.NamespaceList{Items: []tenancy.Namespace{}}
	metadata, err := w.list(ctx, options, predicate, func(n *tenancy.Namespace, _ rbac.Access) { list.Items = append(list.Items, *n) })
	if err != nil {
		return nil, err
	}
	list.ListMeta = metadata
	return list, nil
}

// list calls add with the Namespaces of a list and, if the view shows it, the user's
// access. What it has added is of no use if it returns an error.
func (w *View) list(ctx context.Context, options *metainternalversion.ListOptions, predicate storage.SelectionPredicate, add func(*tenancy.Namespace, rbac.Access)) (list metav1.ListMeta, err error) {
	from, revision, err := w.choose(ctx, options)
	if err != nil {
		return list, err
	}
	v := w.views
	v.mu.RLock()
	position := v.reached
	if revision == 0 {
		revision = v.revisionAt(position)
	} else {
		position = v.positionOf(revision)
	}
	names := w.names(from, position)
	versions := make([]*version, 0, len(names))
	for _, name := range names {
		versions = append(versions, v.at(name, position))
	}
	v.mu.RUnlock()

	var rights rbac.ClusterRights
	if w.form != nil {
		rights = w.rights(position)
	}
	added := int64(0)
	for i, name := range names {
		if versions[i] == nil {
			continue // it does not exist, and a ClusterRole names it
		}
		if options.Limit > 0 && added == options.Limit {
			if list.Continue, err = encodeContinue(name, revision); err != nil {
				return list, apierrors.NewInternalError(fmt.Errorf("encode a continue token: %w", err))
			}
			if predicate.Empty() {
				rest := slices.DeleteFunc(versions[i:], func(n *version) bool { return n == nil })
				list.RemainingItemCount = new(int64(len(rest)))
			}
			break
		}
		if err := context.Cause(ctx); err != nil {
			return list, err
		}
		namespace := versions[i].decode(name)
		if namespace == nil {
			continue
		}
		if selected, err := predicate.Matches(namespace); err != nil {
			return list, apierrors.NewInternalError(err)
		} else if selected {
			var access rbac.Access
			if w.form != nil {
				_, access = w.sees(name, position, &rights)
			}
			add(namespace, access)
			added++
		}
	}
	if v.lost(position) {
		return list, newListExpired(options.Continue, from)
	}
	list.ResourceVersion = fmt.Sprint(revision)
	return list, nil
}

// choose returns the first name and the revision of a list. The revision is 0 if it is
// the one that is reached.
func (w *View) choose(ctx context.Context, options *metainternalversion.ListOptions) (from string, revision int64, err error) {
	v := w.views
	if options.Continue != "" {
		if options.ResourceVersion != "" && options.ResourceVersion != "0" {
			return "", 0, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
		}
		from, revision, err := decodeContinue(options.Continue)
		if err != nil {
			return "", 0, err
		}
		if revision < 0 {
			return from, 0, v.current(ctx)
		}
		return from, revision, v.awaitRevision(ctx, revision)
	}
	asked, err := storage.APIObjectVersioner{}.ParseResourceVersion(options.ResourceVersion)
	if err != nil {
		return "", 0, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", err))
	}
	switch {
	case options.ResourceVersion == "":
		return "", 0, v.current(ctx)
	case asked == 0:
		return "", 0, nil
	}
	if err := v.awaitRevision(ctx, int64(asked)); err != nil {
		return "", 0, err
	}
	// Without a match, a limit means the exact revision, for compatibility.
	if options.ResourceVersionMatch == metav1.ResourceVersionMatchExact || options.ResourceVersionMatch == "" && options.Limit > 0 {
		return "", int64(asked), nil
	}
	return "", 0, nil
}

// names returns the names that the user sees at a position, from a name on, sorted.
// There may be some that do not exist. The lock is held.
func (w *View) names(from string, position int64) []string {
	if !w.all {
		if names, all := w.views.index.Visible(w.subjects, from, position); !all {
			return names
		}
	}
	var names []string
	for name := range w.views.namespaces {
		if name >= from && w.views.at(name, position) != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// newListExpired returns the error for a list at a revision before the history. For one
// that continues, it has a token with which to continue at the current revision.
func newListExpired(token, from string) error {
	if token == "" {
		return apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
	}
	err := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. " +
		"Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted " +
		"between the time the first chunk was returned and now may show up in the list.")
	if next, encodeErr := encodeContinue(from, -1); encodeErr == nil {
		err.ErrStatus.ListMeta.Continue = next
	}
	return err
}
