// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package limitranger is the admission plugin that applies the LimitRanges of a
// Namespace to its Pods: it sets defaults and rejects Pods that violate a bound. The
// rules are in package limits.
package limitranger

import (
	"context"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	boroughadmission "github.com/borough-io/borough/pkg/admission"
	"github.com/borough-io/borough/pkg/admission/limitranger/limits"
	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/pkg/generated/informers/externalversions"
)

// PluginName is the name of the plugin in flags and configuration.
const PluginName = "LimitRanger"

// maxCompared is the maximum number of LimitRanges that a written LimitRange is
// compared with.
const maxCompared = 50

// annotation lists the defaults that the plugin has set in a Pod.
const annotation = "kubernetes.io/limit-ranger"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) {
		return &Plugin{
			Handler: admission.NewHandler(admission.Create, admission.Update),
			source:  newSource(),
		}, nil
	})
}

// Plugin applies LimitRanges to Pods that are created or resized.
//
// A write of a LimitRange, through any server, is in force for every request that
// begins after the response to that write. The watch may be behind, so the
// LimitRanges that the plugin decides by become a precondition of the write of the
// Pod (package precondition).
type Plugin struct {
	*admission.Handler
	source      *source
	synced      cache.DoneChecker
	informerErr error // from SetTenancyInformers
	// unreadable returns the names of the LimitRanges that are stored but cannot be
	// read. It may be nil.
	unreadable boroughadmission.Unreadable
}

var (
	_ admission.MutationInterface            = &Plugin{}
	_ admission.ValidationInterface          = &Plugin{}
	_ admission.InitializationValidator      = &Plugin{}
	_ boroughadmission.WantsTenancyInformers = &Plugin{}
	_ boroughadmission.WantsTenancyClient    = &Plugin{}
	_ boroughadmission.WantsUnreadable       = &Plugin{}
)

// SetTenancyInformers adds the index of the plugin as an event handler to the
// informer of LimitRanges.
func (p *Plugin) SetTenancyInformers(informers externalversions.SharedInformerFactory) {
	informer := informers.Tenancy().V1().LimitRanges().Informer()
	if p.informerErr = informer.SetTransform(newTrimmer().trim); p.informerErr != nil {
		return
	}
	var handle cache.ResourceEventHandlerRegistration
	if handle, p.informerErr = informer.AddEventHandler(p.source.index); p.informerErr == nil {
		p.synced = handle.HasSyncedChecker()
	}
}

// SetTenancyClient sets the client that reads LimitRanges when the watch is behind.
func (p *Plugin) SetTenancyClient(client versioned.Interface) {
	p.source.setClient(client.TenancyV1())
}

// SetUnreadable makes the plugin reject Pods in a Namespace with a LimitRange that
// cannot be read.
func (p *Plugin) SetUnreadable(unreadable boroughadmission.Unreadable) { p.unreadable = unreadable }

// ValidateInitialization returns an error if the plugin is not fully initialized.
func (p *Plugin) ValidateInitialization() error {
	if p.informerErr != nil {
		return fmt.Errorf("read the informer of limit ranges: %w", p.informerErr)
	}
	if p.synced == nil {
		return errors.New("missing the informer of limit ranges")
	}
	if p.source.reads.client == nil {
		return errors.New("missing the client")
	}
	return nil
}

// Admit sets the defaults, and lists them in an annotation.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !limited(a) {
		return nil
	}
	pod, set, err := p.read(ctx, a)
	if err != nil {
		return err
	}
	var summary string
	if old, resized := a.GetOldObject().(*tenancy.Pod); resized {
		summary, err = set.SetResizeDefaults(&pod.Spec, &old.Spec)
	} else {
		summary, err = set.SetDefaults(&pod.Spec)
	}
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	if summary != "" {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, annotation, summary)
	}
	return nil
}

// Validate rejects a Pod, or the resize of a Pod, that violates a bound. It also
// warns about a LimitRange that contradicts others.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() == tenancy.Resource("limitranges") {
		p.warn(ctx, a)
		return nil
	}
	if !limited(a) {
		return nil
	}
	pod, set, err := p.read(ctx, a)
	if err != nil {
		return err
	}
	var violations []error
	if old, resized := a.GetOldObject().(*tenancy.Pod); resized {
		violations = set.CheckResize(&pod.Spec, &old.Spec)
	} else {
		violations = set.Check(&pod.Spec)
	}
	if len(violations) > 0 {
		return admission.NewForbidden(a, utilerrors.NewAggregate(violations))
	}
	return nil
}

// warn adds a warning to the response for each contradiction between the LimitRange
// that is written and another in its Namespace. It neither waits for the cache nor
// rejects the request: LimitRanges that cannot be read are not compared.
func (p *Plugin) warn(ctx context.Context, a admission.Attributes) {
	limitRange, ok := a.GetObject().(*tenancy.LimitRange)
	if !ok || a.GetOperation() == admission.Delete {
		return
	}
	others := p.source.cached(a.GetNamespace())
	if len(others.limitRanges) < maxCompared { // otherwise the cached ones are enough
		var err error
		if others, err = p.source.current(ctx, a.GetNamespace()); err != nil {
			klog.FromContext(ctx).Info("Could not compare a limit range with the others in its namespace", "limitRange", klog.KObj(limitRange), "err", err)
			return
		}
	}
	written := &v1.LimitRange{ObjectMeta: limitRange.ObjectMeta, Spec: limitRange.Spec}
	for _, contradiction := range limits.Contradictions(ctx, written, others.limitRanges[:min(len(others.limitRanges), maxCompared)]) {
		warning.AddWarning(ctx, "", contradiction)
	}
}

// limited reports whether LimitRanges apply to the request. Updates, except of the
// resize subresource, cannot change resources, and Pods that are being deleted are
// ignored.
func limited(a admission.Attributes) bool {
	if a.GetResource().GroupResource() != tenancy.Resource("pods") {
		return false
	}
	switch {
	case a.GetOperation() == admission.Create && a.GetSubresource() == "":
		return true
	case a.GetOperation() == admission.Update && a.GetSubresource() == "resize":
		old, err := meta.Accessor(a.GetOldObject())
		return err != nil || old.GetDeletionTimestamp() == nil
	}
	return false
}

// read returns the Pod of the request and the LimitRanges that apply to it.
func (p *Plugin) read(ctx context.Context, a admission.Attributes) (*tenancy.Pod, *limits.Set, error) {
	pod, ok := a.GetObject().(*tenancy.Pod)
	if !ok {
		return nil, nil, apierrors.NewInternalError(fmt.Errorf("apply limit ranges: got %T instead of a pod", a.GetObject()))
	}
	if err := boroughadmission.WaitForSync(ctx, a, p.synced); err != nil {
		return nil, nil, err
	}
	if a.GetNamespace() == "" {
		return pod, none.set(), nil // invalid
	}
	// A limit must not silently cease to apply. Check this before the LimitRanges are read,
	// which may lack one that can be read again since, and after it, because the read
	// records those that it leaves out.
	if err := p.confirmReadable(a.GetNamespace()); err != nil {
		return nil, nil, err
	}
	limitRanges, err := p.source.inForce(ctx, a.GetNamespace())
	if err != nil {
		return nil, nil, admission.NewForbidden(a, err)
	}
	if err := p.confirmReadable(a.GetNamespace()); err != nil {
		return nil, nil, err
	}
	return pod, limitRanges.set(), nil
}

// confirmReadable returns an error if a LimitRange of the Namespace cannot be read.
func (p *Plugin) confirmReadable(namespace string) error {
	if p.unreadable == nil {
		return nil
	}
	if names := p.unreadable(tenancy.Resource("limitranges"), namespace); len(names) > 0 {
		return apierrors.NewInternalError(fmt.Errorf("limit range %q of namespace %q applies to the pod, but cannot be read from storage", names[0], namespace))
	}
	return nil
}
