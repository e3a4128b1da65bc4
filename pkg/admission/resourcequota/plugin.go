// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resourcequota is the admission plugin that checks dry runs against the
// ResourceQuotas. Storage checks everything that is written, in the transaction of the
// write; a dry run does not reach it.
package resourcequota

import (
	"context"
	"errors"
	"io"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"

	boroughadmission "github.com/borough-io/borough/pkg/admission"
	"github.com/borough-io/borough/pkg/quota"
)

// PluginName is the name of the plugin in flags, as in Kubernetes.
const PluginName = "ResourceQuota"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) {
		return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}, nil
	})
}

// Plugin rejects dry runs of what a quota does not allow.
type Plugin struct {
	*admission.Handler
	quotas quota.Checker
}

var (
	_ admission.ValidationInterface = &Plugin{}
	_ boroughadmission.WantsQuotas  = &Plugin{}
)

// SetQuotas sets what checks changes.
func (p *Plugin) SetQuotas(quotas quota.Checker) { p.quotas = quotas }

// ValidateInitialization returns an error if the plugin is not initialized.
func (p *Plugin) ValidateInitialization() error {
	if p.quotas == nil {
		return errors.New("missing the quotas")
	}
	return nil
}

// Validate returns Forbidden if the request is a dry run and a quota does not allow it.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	change := changeOf(a)
	if change == nil || change.IsNeutral() {
		return nil
	}
	denial, err := p.quotas.CheckQuotas(ctx, a.GetNamespace(), change)
	if err != nil {
		if _, ok := err.(apierrors.APIStatus); ok {
			return err
		}
		return apierrors.NewInternalError(err)
	}
	if denial != nil {
		return admission.NewForbidden(a, denial)
	}
	return nil
}

// changeOf returns the change that a dry run would make, or nil for another request and
// for one whose object is not stored, such as a Binding.
func changeOf(a admission.Attributes) *quota.Change {
	if !a.IsDryRun() || a.GetNamespace() == "" {
		return nil
	}
	resource, obj, old := a.GetResource().GroupResource(), a.GetObject(), a.GetOldObject()
	change := &quota.Change{Resource: resource, New: quota.Of(resource, obj), StatusOnly: a.GetSubresource() == "status"}
	switch {
	case a.GetOperation() == admission.Create:
		if a.GetSubresource() != "" {
			return nil
		}
	case reflect.TypeOf(obj) != reflect.TypeOf(old):
		return nil
	case exists(old):
		change.Old = quota.Of(resource, old)
	}
	return change
}

// exists reports whether the old object of an update exists, which that of a create by
// PUT does not.
func exists(old runtime.Object) bool {
	accessor, err := meta.Accessor(old)
	return err == nil && accessor.GetResourceVersion() != ""
}
