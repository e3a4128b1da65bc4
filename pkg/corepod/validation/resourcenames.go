// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Resources counted in whole objects.
var countedResources = sets.New(
	corev1.ResourcePods,
	corev1.ResourceQuotas,
	corev1.ResourceServices,
	corev1.ResourceReplicationControllers,
	corev1.ResourceSecrets,
	corev1.ResourceConfigMaps,
	corev1.ResourcePersistentVolumeClaims,
	corev1.ResourceServicesNodePorts,
	corev1.ResourceServicesLoadBalancers,
)

// Resources measured in quantities.
var measuredResources = sets.New(
	corev1.ResourceCPU,
	corev1.ResourceMemory,
	corev1.ResourceStorage,
	corev1.ResourceEphemeralStorage,
	corev1.ResourceRequestsCPU,
	corev1.ResourceRequestsMemory,
	corev1.ResourceRequestsStorage,
	corev1.ResourceRequestsEphemeralStorage,
	corev1.ResourceLimitsCPU,
	corev1.ResourceLimitsMemory,
	corev1.ResourceLimitsEphemeralStorage,
)

// IsHugePageResource reports whether name is hugepages-<size>.
func IsHugePageResource(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// isStandardResource reports whether name is one that Kubernetes defines, for
// containers or for quotas.
func isStandardResource(name corev1.ResourceName) bool {
	return countedResources.Has(name) || measuredResources.Has(name) ||
		IsHugePageResource(name) ||
		strings.HasPrefix(string(name), corev1.ResourceRequestsHugePagesPrefix)
}

// IsStandardQuotaResource reports whether name is one that Kubernetes defines for
// quotas.
func IsStandardQuotaResource(name corev1.ResourceName) bool {
	return isStandardResource(name) && name != corev1.ResourceStorage
}

// isStandardContainerResource reports whether name is a resource that Kubernetes
// defines and a container can request.
func isStandardContainerResource(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return true
	}
	return IsHugePageResource(name)
}

// isNativeResource reports whether name belongs to kubernetes.io or a domain that
// ends in it. A name without a domain does.
func isNativeResource(name corev1.ResourceName) bool {
	return isUnqualified(name) || strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}

// IsExtendedResource reports whether name is a resource that Kubernetes does not
// define: it has another domain, and is still a qualified name with the prefix
// "requests.", which quotas use.
func IsExtendedResource(name corev1.ResourceName) bool {
	return !isNativeResource(name) &&
		!strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix) &&
		len(content.IsLabelKey(corev1.DefaultResourceRequestsPrefix+string(name))) == 0
}

// isIntegerResource reports whether only whole numbers of the resource make sense.
func isIntegerResource(name corev1.ResourceName) bool {
	return countedResources.Has(name) || IsExtendedResource(name)
}

// IsOvercommitAllowed reports whether the limit of the resource may be greater
// than its request.
func IsOvercommitAllowed(name corev1.ResourceName) bool {
	return isNativeResource(name) && !IsHugePageResource(name)
}

// ValidateResourceName checks that name is a qualified name, and standard if it
// has no domain.
func ValidateResourceName(name corev1.ResourceName, path *field.Path) field.ErrorList {
	errs := invalid(path, name, content.IsLabelKey(string(name)))
	if len(errs) == 0 && isUnqualified(name) && !isStandardResource(name) {
		errs = append(errs, field.Invalid(path, name, "must be a standard resource type or fully qualified"))
	}
	return errs
}

// ValidateContainerResourceName checks that name is a resource that a container
// can request.
func ValidateContainerResourceName(name corev1.ResourceName, path *field.Path) field.ErrorList {
	errs := ValidateResourceName(name, path)
	switch {
	case isUnqualified(name) && !isStandardContainerResource(name):
		errs = append(errs, field.Invalid(path, name, "must be a standard resource for containers"))
	case !isNativeResource(name) && !IsExtendedResource(name):
		errs = append(errs, field.Invalid(path, name, "doesn't follow extended resource name standard"))
	}
	return errs
}

// ValidateQuotaResourceName checks that name is a resource that a quota can limit.
func ValidateQuotaResourceName(name corev1.ResourceName, path *field.Path) field.ErrorList {
	errs := ValidateResourceName(name, path)
	if isUnqualified(name) && !IsStandardQuotaResource(name) {
		errs = append(errs, field.Invalid(path, name, "must be a standard resource for quota"))
	}
	return errs
}

// ValidateResourceQuantity checks that the quantity is not negative, and whole
// where the resource is counted.
func ValidateResourceQuantity(name corev1.ResourceName, quantity resource.Quantity, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if quantity.Sign() < 0 {
		errs = append(errs, field.Invalid(path, quantity.String(), apivalidation.IsNegativeErrorMsg))
	}
	if isIntegerResource(name) && !isWhole(quantity) {
		errs = append(errs, field.Invalid(path, quantity, "must be an integer"))
	}
	return errs
}

// isWhole reports whether the quantity is a whole number, however large. Its Value
// and MilliValue are wrong beyond an int64.
func isWhole(quantity resource.Quantity) bool {
	rounded := quantity.DeepCopy()
	return rounded.RoundUp(0)
}

func isUnqualified(name corev1.ResourceName) bool {
	return !strings.Contains(string(name), "/")
}
