// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespacepurge

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"github.com/borough-io/borough/pkg/registry/deletecollection"
	"github.com/borough-io/borough/pkg/storage/charge"
	"github.com/borough-io/borough/pkg/storage/fence"
)

// purgeCached deletes the content that the watch caches show, finalizes the Namespace,
// and reports whether that removed it. If it did not, purge has to follow.
//
// The caches may be older than the content, because storage verifies that the Namespace
// is empty before it removes it. That saves the reads with which purge makes sure that
// it has found everything. Nothing is deleted if an object is held, or the objects of a
// resource are more than a page, or cannot be read.
func (r *REST) purgeCached(ctx context.Context, report *report, options *metav1.CreateOptions) (finalized bool, err error) {
	contents := make([]*cachedContent, len(r.Content))
	found := 0
	for i := range r.Content {
		contents[i] = &cachedContent{deleter: r.newDeleter(ctx, i, report, options)}
		if !contents[i].list(ctx, true) || r.hasUnreadable(ctx, contents[i].Content) {
			return false, nil
		}
		found += len(contents[i].objects)
	}
	if found > 0 {
		if listed, err := listStages(ctx, contents); !listed || err != nil {
			return false, err
		}
		if deleted, err := deleteCached(ctx, contents); !deleted || err != nil {
			return false, err
		}
	}
	return r.finalize(fence.LikelyEmpty(ctx), report, options), nil
}

// listStages makes sure that a stage is not followed by another before all of its objects
// are known, and that what was listed is content of the Namespace that is being purged.
// It reports whether all objects can be deleted at once.
func listStages(ctx context.Context, contents []*cachedContent) (listed bool, err error) {
	namespace, err := contents[0].checkNamespace(ctx) // follows the lists, as in purge
	if err != nil {
		return false, err
	}
	terminating, err := storage.APIObjectVersioner{}.ObjectResourceVersion(namespace)
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	again := false
	for i, content := range contents {
		followed := slices.ContainsFunc(contents[i:], func(later *cachedContent) bool {
			return later.Stage > content.Stage && len(later.objects) > 0
		})
		// No object is created in a Terminating Namespace.
		if followed && content.revision < terminating {
			if !content.list(ctx, false) {
				return false, nil
			}
			again = true
		}
	}
	if again {
		_, err = contents[0].checkNamespace(ctx)
	}
	return err == nil, err
}

// deleteCached deletes the content in its order, and reports whether it deleted all of
// it. An object that admission refuses to delete is left to purge.
func deleteCached(ctx context.Context, contents []*cachedContent) (deleted bool, err error) {
	ctx = charge.Exempt(ctx)
	for _, content := range contents {
		content.begin()
		err := content.ForEach(ctx, content.objects, content.delete)
		if deletecollection.IsRefused(err) {
			return false, nil
		}
		if err != nil || content.result.purged.Held > 0 {
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

// errSeveralPages ends a list of content that is more than a page.
var errSeveralPages = errors.New("there is more than one page")

// list lists the content, as the watch cache has it or at the latest revision, and reports
// whether a delete would remove each of the objects. It reports false if they are more than
// a page, or if the list fails: purge lists again, and returns the error.
func (c *cachedContent) list(ctx context.Context, cached bool) bool {
	options := &metainternalversion.ListOptions{}
	if cached {
		// With the resourceVersion 0 the cache would ignore the limit.
		options.ResourceVersion, options.ResourceVersionMatch = "1", metav1.ResourceVersionMatchNotOlderThan
	}
	err := c.EachPage(ctx, options, func(list runtime.Object, page []runtime.Object) error {
		listMeta, err := meta.ListAccessor(list)
		if err != nil {
			return err
		}
		if listMeta.GetContinue() != "" {
			return errSeveralPages
		}
		c.objects = page
		c.revision, err = storage.APIObjectVersioner{}.ParseResourceVersion(listMeta.GetResourceVersion())
		return err
	})
	return err == nil && !slices.ContainsFunc(c.objects, func(obj runtime.Object) bool {
		object, err := meta.Accessor(obj)
		return err != nil || object.GetDeletionTimestamp() != nil || c.isHeld(ctx, obj, object)
	})
}
