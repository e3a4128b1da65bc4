// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespacetemplate

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apiserver/pkg/storage"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/tenancy/namespace/content"
	"github.com/borough-io/borough/pkg/storage/transaction"
)

var _ content.Source = &REST{}

// For implements content.Source: the content is that of the template for the Namespace.
// The condition is that no template is newer than those that were read, and that the
// chosen one has not changed. It needs no more: without another template, the choice
// would be the same.
func (r *REST) For(ctx context.Context, ns *tenancy.Namespace, fresh bool) (content.Content, error) {
	// Before the list, which may lack one that can be read again since, and after it,
	// because it records those that it leaves out.
	if err := r.confirmReadable(ns); err != nil {
		return content.Content{}, err
	}
	options := &metainternalversion.ListOptions{ResourceVersion: "0"} // what is cached
	if fresh {
		options.ResourceVersion = ""
	}
	obj, err := r.Store.List(ctx, options)
	if err != nil {
		return content.Content{}, err
	}
	list := obj.(*tenancy.NamespaceTemplateList)
	if err := r.confirmReadable(ns); err != nil {
		return content.Content{}, err
	}
	revision, err := revisionOf(list.ResourceVersion)
	if err != nil {
		return content.Content{}, err
	}
	condition := &transaction.Condition{Prefix: r.prefix, Revision: revision}
	template, err := choose(list.Items, ns)
	switch {
	case err != nil:
		return content.Content{}, apierrors.NewForbidden(tenancy.Resource("namespaces"), ns.Name, err)
	case template == nil:
		return content.Content{Condition: condition}, nil
	}
	condition.Key = r.prefix + template.Name
	if condition.KeyRevision, err = revisionOf(template.ResourceVersion); err != nil {
		return content.Content{}, err
	}
	return content.Content{
		Origin:        fmt.Sprintf("namespace template %q", template.Name),
		LimitRange:    template.Spec.LimitRange.In(ns.Name),
		ResourceQuota: template.Spec.ResourceQuota.In(ns.Name),
		RoleBinding:   template.Spec.RoleBinding.In(ns.Name),
		Condition:     condition,
	}, nil
}

// confirmReadable returns an error if a template cannot be read, which may apply to the
// Namespace.
func (r *REST) confirmReadable(ns *tenancy.Namespace) error {
	if unreadable := r.unreadable(); len(unreadable) > 0 {
		return apierrors.NewInternalError(fmt.Errorf("namespace %q cannot be created because namespace template %q cannot be read from storage, and may apply to the namespace", ns.Name, unreadable[0]))
	}
	return nil
}

func revisionOf(resourceVersion string) (int64, error) {
	revision, err := storage.APIObjectVersioner{}.ParseResourceVersion(resourceVersion)
	if err != nil {
		return 0, fmt.Errorf("read the resourceVersion of namespace templates: %w", err)
	}
	return int64(revision), nil
}
