// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespacepurge

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"github.com/borough-io/borough/pkg/registry/deletecollection"
	"github.com/borough-io/borough/pkg/storage/charge"
)

// purgeCached deletes the content that the watch caches show, finalizes the Namespace,
// and reports whether that removed it. If it did not, purge has to follow.
//
// The caches may be older than the content, because storage verifies that the Namespace
// is empty before it removes it. That saves the reads with which purge makes sure that
// it has found everything. Nothing is deleted if an object is held.
func (r *REST) purgeCached(ctx context.Context, report *report, options *metav1.CreateOptions) (finalized bool, err error) {
	contents := make([]*cachedContent, len(r.Content))
	found := 0
	for i := range r.Content {
		content := &cachedContent{deleter: r.newDeleter(ctx, i, report, options)}
		if err := content.list(ctx); err != nil || content.anyHeld(ctx) {
			return false, nil //nolint:nilerr // purge returns the error, unless its list succeeds
		}
		contents[i], found = content, found+len(content.objects)
	}
	if found > 0 {
		// As in a purge, the check follows the lists.
		namespace, err := contents[0].checkNamespace(ctx)
		if err != nil {
			return false, err
		}
		if deleted, err := deleteCached(ctx, contents, namespace); !deleted || err != nil {
			return false, err
		}
	}
	return r.finalize(ctx, report, options), nil
}

// deleteCached deletes the content of a Terminating Namespace stage by stage, and reports
// whether it deleted all of it. An object that admission refuses to delete is left to
// purge. It deletes nothing if an earlier stage may have content that the cache does not
// show.
func deleteCached(ctx context.Context, contents []*cachedContent, namespace runtime.Object) (deleted bool, err error) {
	terminating, err := storage.APIObjectVersioner{}.ObjectResourceVersion(namespace)
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	for i, content := range contents {
		for _, earlier := range contents[:i] {
			// No object is created in a Terminating Namespace.
			if len(content.objects) > 0 && earlier.Stage < content.Stage && earlier.revision < terminating {
				return false, nil
			}
		}
	}
	ctx = charge.Exempt(ctx)
	for _, content := range contents {
		err := content.ForEach(ctx, content.objects, content.delete)
		if deletecollection.IsRefused(err) {
			return false, nil
		}
		if err != nil || content.result.get().Held > 0 {
			return false, err
		}
	}
	return true, nil
}

// cachedContent is the content of one resource in the Namespace of the request, as the
// watch cache shows it.
type cachedContent struct {
	*deleter
	objects []runtime.Object
	// revision is the revision of the cache.
	revision uint64
}

// list lists the content. Without a watch cache it reads from etcd.
func (c *cachedContent) list(ctx context.Context) error {
	list, err := c.Store.List(ctx, &metainternalversion.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return err
	}
	if c.objects, err = meta.ExtractList(list); err != nil {
		return err
	}
	listMeta, err := meta.ListAccessor(list)
	if err != nil {
		return err
	}
	c.revision, err = storage.APIObjectVersioner{}.ParseResourceVersion(listMeta.GetResourceVersion())
	return err
}

// anyHeld returns whether a delete of one of the objects would not remove it.
func (c *cachedContent) anyHeld(ctx context.Context) bool {
	for _, obj := range c.objects {
		object, err := meta.Accessor(obj)
		if err != nil || object.GetDeletionTimestamp() != nil || c.isHeld(ctx, obj, object) {
			return true
		}
	}
	return false
}
