// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package limitranger is the admission plugin that applies the LimitRanges of a
// Namespace to its Pods: it fills in defaults and refuses what is out of bounds.
// Package limits says how.
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

// maxCompared is with how many others of its Namespace a LimitRange is compared.
const maxCompared = 50

// annotation tells what the plugin has set in a Pod.
const annotation = "kubernetes.io/limit-ranger"

// Register adds the plugin to those that can be enabled.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) {
		return &Plugin{
			Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete),
			source:  newSource(),
		}, nil
	})
}

// Plugin applies LimitRanges to Pods that are created or resized.
//
// Whether a LimitRange is in force that has just been created, changed or
// deleted:
//   - Written through this server, it is: a Pod that comes after the answer to
//     the write is judged by it, whatever the cache knows.
//   - Written through another server, it is when the watch has delivered it. Even
//     before that, a Namespace of which the cache has no LimitRange is looked up
//     in storage, once a second at most.
type Plugin struct {
	*admission.Handler
	source *source
	synced cache.DoneChecker
	failed error // of the informer
}

var (
	_ admission.MutationInterface            = &Plugin{}
	_ admission.ValidationInterface          = &Plugin{}
	_ admission.InitializationValidator      = &Plugin{}
	_ boroughadmission.WantsTenancyInformers = &Plugin{}
	_ boroughadmission.WantsTenancyClient    = &Plugin{}
)

// SetTenancyInformers makes the plugin read what the informer of LimitRanges
// delivers.
func (p *Plugin) SetTenancyInformers(informers externalversions.SharedInformerFactory) {
	informer := informers.Tenancy().V1().LimitRanges().Informer()
	if p.failed = informer.SetTransform(withoutManagedFields); p.failed != nil {
		return
	}
	var handle cache.ResourceEventHandlerRegistration
	if handle, p.failed = informer.AddEventHandler(p.source.delivered); p.failed == nil {
		p.synced = handle.HasSyncedChecker()
	}
}

// withoutManagedFields drops what nobody reads from a cache, and is often half of
// an object.
func withoutManagedFields(obj any) (any, error) {
	if limitRange, ok := obj.(*v1.LimitRange); ok {
		limitRange.ManagedFields = nil
	}
	return obj, nil
}

// SetTenancyClient makes the plugin look up with the client what the cache may
// not know yet.
func (p *Plugin) SetTenancyClient(client versioned.Interface) {
	p.source.stored = client.TenancyV1()
}

// ValidateInitialization says what the plugin has not been given.
func (p *Plugin) ValidateInitialization() error {
	if p.failed != nil {
		return fmt.Errorf("read the informer of limit ranges: %w", p.failed)
	}
	if p.synced == nil {
		return errors.New("missing the informer of limit ranges")
	}
	if p.source.stored == nil {
		return errors.New("missing the client")
	}
	return nil
}

// Admit fills in the defaults, and records them in an annotation.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !limited(a) {
		return nil
	}
	pod, set, err := p.read(ctx, a)
	if err != nil {
		return err
	}
	var done string
	if old, resized := a.GetOldObject().(*tenancy.Pod); resized {
		done = set.SetResizeDefaults(&pod.Spec, &old.Spec)
	} else {
		done = set.SetDefaults(&pod.Spec)
	}
	if done != "" {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, annotation, done)
	}
	return nil
}

// Validate refuses a Pod that is out of bounds, and a resize of a Pod to what is.
// It also warns of a LimitRange that contradicts others, and takes note that it is
// about to be written: nothing can keep it from that after this.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() == tenancy.Resource("limitranges") {
		p.warn(ctx, a)
		p.source.writes.begin(ctx, a.GetNamespace())
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

// warn adds a warning to the answer for each contradiction between the LimitRange
// that is written and another of its Namespace. A warning is no reason to wait or
// to fail: what can't be read is not compared.
func (p *Plugin) warn(ctx context.Context, a admission.Attributes) {
	limitRange, ok := a.GetObject().(*tenancy.LimitRange)
	if !ok || a.GetOperation() == admission.Delete {
		return
	}
	others := p.source.delivered.in(a.GetNamespace())
	if len(others.limitRanges) < maxCompared { // otherwise there are enough, whatever else was written
		var err error
		if others, _, err = p.source.known(ctx, a.GetNamespace()); err != nil {
			klog.FromContext(ctx).Info("Could not compare a limit range with the others of its namespace", "limitRange", klog.KObj(limitRange), "reason", err)
			return
		}
	}
	written := &v1.LimitRange{ObjectMeta: limitRange.ObjectMeta, Spec: limitRange.Spec}
	for _, contradiction := range limits.Contradictions(written, others.limitRanges[:min(len(others.limitRanges), maxCompared)]) {
		warning.AddWarning(ctx, "", contradiction)
	}
}

// limited says whether LimitRanges apply to the request. Plain updates can't
// change resources, and what is being deleted is left alone.
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
	set, err := p.source.limits(ctx, a.GetNamespace())
	if err != nil {
		return nil, nil, admission.NewForbidden(a, err)
	}
	return pod, set, nil
}
