// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// validateEphemeral checks a volume that exists as long as its Pod, by the claim
// that is to be created for it.
func validateEphemeral(ephemeral *corev1.EphemeralVolumeSource, path *field.Path) field.ErrorList {
	path = path.Child("volumeClaimTemplate")
	template := ephemeral.VolumeClaimTemplate
	if template == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	metaPath := path.Child("metadata")
	errs := apivalidation.ValidateAnnotations(template.Annotations, metaPath.Child("annotations"))
	errs = append(errs, metavalidation.ValidateLabels(template.Labels, metaPath.Child("labels"))...)
	errs = append(errs, allowFields(template.ObjectMeta, claimTemplateMetaFields, "cannot be set", metaPath)...)
	return append(errs, validateClaimSpec(&template.Spec, path.Child("spec"))...)
}

var claimTemplateMetaFields = sets.New("Annotations", "Labels")

var accessModes = []corev1.PersistentVolumeAccessMode{
	corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOnce, corev1.ReadWriteOncePod,
}

func validateClaimSpec(spec *corev1.PersistentVolumeClaimSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	modesPath := path.Child("accessModes")
	if len(spec.AccessModes) == 0 {
		errs = append(errs, field.Required(modesPath, "at least 1 access mode is required"))
	}
	errs = append(errs, validateLabelSelector(spec.Selector, path.Child("selector"))...)
	oncePod, other := false, false
	for _, mode := range spec.AccessModes {
		errs = append(errs, supported(modesPath, mode, accessModes...)...)
		switch {
		case mode == corev1.ReadWriteOncePod:
			oncePod = true
		case slices.Contains(accessModes, mode):
			other = true
		}
	}
	if oncePod && other {
		errs = append(errs, field.Forbidden(modesPath, "may not use ReadWriteOncePod with other access modes"))
	}
	errs = append(errs, validateStorageRequest(spec.Resources.Requests, path.Child("resources").Key(string(corev1.ResourceStorage)))...)
	errs = append(errs, validateOptionalName(path.Child("storageClassName"), ptr.Deref(spec.StorageClassName, ""))...)
	if spec.VolumeMode != nil {
		errs = append(errs, supported(path.Child("volumeMode"), *spec.VolumeMode,
			corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)...)
	}
	errs = append(errs, validateDataSources(spec, path)...)
	return append(errs, validateOptionalName(path.Child("volumeAttributesClassName"), ptr.Deref(spec.VolumeAttributesClassName, ""))...)
}

func validateStorageRequest(requests corev1.ResourceList, path *field.Path) field.ErrorList {
	storage, ok := requests[corev1.ResourceStorage]
	switch {
	case !ok:
		return field.ErrorList{field.Required(path, "")}
	case storage.Cmp(resource.Quantity{}) <= 0:
		return field.ErrorList{field.Invalid(path, storage.String(), "must be greater than zero")}
	}
	return nil
}

// validateDataSources checks what a volume is filled from. The two fields name
// the same, unless dataSourceRef names something in another namespace.
func validateDataSources(spec *corev1.PersistentVolumeClaimSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	source, ref := spec.DataSource, spec.DataSourceRef
	if source != nil {
		errs = append(errs, validateDataSource(source.APIGroup, source.Kind, source.Name, path.Child("dataSource"))...)
	}
	if ref == nil {
		return errs
	}
	refPath := path.Child("dataSourceRef")
	errs = append(errs, validateDataSource(ref.APIGroup, ref.Kind, ref.Name, refPath)...)
	elsewhere := ptr.Deref(ref.Namespace, "") != ""
	if elsewhere {
		errs = append(errs, dnsLabel(refPath.Child("namespace"), *ref.Namespace)...)
	}
	if source == nil {
		return errs
	}
	// The value in these is a path, as in kube-apiserver.
	if elsewhere {
		errs = append(errs, field.Invalid(path, path.Child("dataSource"), "may not be specified when dataSourceRef.namespace is specified"))
	} else if !reflect.DeepEqual(source.APIGroup, ref.APIGroup) || source.Kind != ref.Kind || source.Name != ref.Name {
		errs = append(errs, field.Invalid(path, path.Child("dataSource"), "must match dataSourceRef"))
	}
	return errs
}

func validateDataSource(group *string, kind, name string, path *field.Path) field.ErrorList {
	errs := required(path.Child("name"), name)
	errs = append(errs, required(path.Child("kind"), kind)...)
	if group != nil && *group != "" {
		return append(errs, dnsSubdomain(path.Child("apiGroup"), *group)...)
	}
	if kind != "PersistentVolumeClaim" {
		errs = append(errs, field.Invalid(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup"))
	}
	return errs
}
