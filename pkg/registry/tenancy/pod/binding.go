// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	storageerr "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/apiserver/pkg/util/dryrun"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/corepod"
	"github.com/borough-io/borough/pkg/corepod/prepare"
	"github.com/borough-io/borough/pkg/corepod/validation"
	"github.com/borough-io/borough/pkg/requestlimits"
)

// BindingREST serves pods/binding, which assigns a Pod to a node.
type BindingREST struct {
	store *genericregistry.Store
}

var (
	_ rest.NamedCreater                   = &BindingREST{}
	_ rest.SubresourceObjectMetaPreserver = &BindingREST{}
)

// New returns an empty Binding.
func (r *BindingREST) New() runtime.Object { return &tenancy.Binding{} }

// Destroy does nothing: the store is shared, and REST ends it.
func (r *BindingREST) Destroy() {}

// PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate is true: the UID and
// the resourceVersion of a Binding are those that the Pod has to have.
func (r *BindingREST) PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate() bool { return true }

// Create assigns the Pod to the node that the Binding names, and adds the
// annotations and labels of the Binding to those of the Pod. The reply is a
// Status.
//
// It returns Conflict where the Pod is assigned already, is being deleted, waits
// at a scheduling gate, or is not the one that the Binding is for.
func (r *BindingREST) Create(ctx context.Context, name string, obj runtime.Object, createValidation rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	binding, ok := obj.(*tenancy.Binding)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a Binding object: %T", obj))
	}
	if name != binding.Name {
		return nil, apierrors.NewBadRequest("name in URL does not match name in Binding object")
	}
	if errs := validation.ValidatePodBinding((*corev1.Binding)(binding)); len(errs) != 0 {
		return nil, apierrors.NewInvalid(tenancy.Kind("Binding"), name, requestlimits.LimitErrors(errs))
	}
	if createValidation != nil {
		if err := createValidation(ctx, binding.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	if err := r.assign(ctx, binding, dryrun.IsDryRun(options.DryRun)); err != nil {
		return nil, err
	}
	return &metav1.Status{Status: metav1.StatusSuccess}, nil
}

func (r *BindingREST) assign(ctx context.Context, binding *tenancy.Binding, dryRun bool) error {
	key, err := r.store.KeyFunc(ctx, binding.Name)
	if err != nil {
		return err
	}
	preconditions := &storage.Preconditions{}
	if binding.UID != "" {
		preconditions.UID = &binding.UID
	}
	if binding.ResourceVersion != "" {
		preconditions.ResourceVersion = &binding.ResourceVersion
	}
	update := func(existing runtime.Object) (runtime.Object, error) {
		p := existing.(*tenancy.Pod)
		if err := assignable(p); err != nil {
			return nil, err
		}
		p.Spec.NodeName = binding.Target.Name
		// A nomination would mislead, now that the Pod has its node.
		p.Status.NominatedNodeName = ""
		p.Annotations = merged(p.Annotations, binding.Annotations)
		prepare.DropInitContainerAnnotations((*corev1.Pod)(p))
		p.Labels = merged(p.Labels, binding.Labels)
		corepod.SetCondition(&p.Status, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue})
		return p, nil
	}

	err = r.store.Storage.GuaranteedUpdate(ctx, key, &tenancy.Pod{}, false, preconditions, storage.SimpleUpdate(update), dryRun, nil)
	if err == nil {
		return nil
	}
	err = storageerr.InterpretGetError(err, tenancy.Resource("pods"), binding.Name)
	err = storageerr.InterpretUpdateError(err, tenancy.Resource("pods"), binding.Name)
	if _, ok := err.(apierrors.APIStatus); !ok {
		err = apierrors.NewConflict(tenancy.Resource("pods/binding"), binding.Name, err)
	}
	return err
}

// assignable returns why the Pod can't be assigned to a node, or nil.
func assignable(p *tenancy.Pod) error {
	switch {
	case p.DeletionTimestamp != nil:
		return fmt.Errorf("pod %s is being deleted, cannot be assigned to a host", p.Name)
	case p.Spec.NodeName != "":
		return fmt.Errorf("pod %v is already assigned to node %q", p.Name, p.Spec.NodeName)
	case len(p.Spec.SchedulingGates) != 0:
		return fmt.Errorf("pod %v has non-empty .spec.schedulingGates", p.Name)
	}
	return nil
}

// merged adds what is in more to m, in place of what m has under the same keys.
func merged(m, more map[string]string) map[string]string {
	if m == nil {
		return maps.Clone(more)
	}
	maps.Copy(m, more)
	return m
}
