// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"math/big"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/borough-io/borough/pkg/corepod"
	"github.com/borough-io/borough/pkg/requestlimits"
)

// validateResources checks what a container or a whole Pod requests and is
// limited to. validName says which resources it may name.
func validateResources(r *corev1.ResourceRequirements, validName func(corev1.ResourceName, *field.Path) field.ErrorList, claims claimNames, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	limits, requests := path.Child("limits"), path.Child("requests")
	for _, name := range sortedKeys(r.Limits) {
		path, limit := limits.Key(string(name)), r.Limits[name]
		errs = append(errs, validName(name, path)...)
		errs = append(errs, ValidateResourceQuantity(name, limit, path)...)
		errs = append(errs, validateHugePages(name, limit, path)...)
	}
	for _, name := range sortedKeys(r.Requests) {
		path, request := requests.Key(string(name)), r.Requests[name]
		errs = append(errs, validName(name, path)...)
		errs = append(errs, ValidateResourceQuantity(name, request, path)...)
		// From here to the end kube-apiserver's paths name the lists.
		switch limit, limited := r.Limits[name]; {
		case !limited:
			if !IsOvercommitAllowed(name) {
				errs = append(errs, field.Required(limits, "Limit must be set for non overcommitable resources"))
			}
		case !IsOvercommitAllowed(name) && request.Cmp(limit) != 0:
			errs = append(errs, field.Invalid(requests, request.String(), fmt.Sprintf("must be equal to %s limit of %s", name, limit.String())))
		case request.Cmp(limit) > 0:
			errs = append(errs, field.Invalid(requests, request.String(), fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String())))
		}
		errs = append(errs, validateHugePages(name, request, path)...)
	}
	if hasAny(r, IsHugePageResource) && !hasAny(r, isCPUOrMemory) {
		errs = append(errs, field.Forbidden(path, "HugePages require cpu or memory"))
	}
	return append(errs, validateClaimReferences(r.Claims, claims, path.Child("claims"))...)
}

func isCPUOrMemory(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory
}

func hasAny(r *corev1.ResourceRequirements, is func(corev1.ResourceName) bool) bool {
	for name := range r.Limits {
		if is(name) {
			return true
		}
	}
	for name := range r.Requests {
		if is(name) {
			return true
		}
	}
	return false
}

// validateHugePages checks that the quantity of a huge page resource is made of
// whole pages.
func validateHugePages(name corev1.ResourceName, quantity resource.Quantity, path *field.Path) field.ErrorList {
	size, ok := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix)
	if !ok {
		return nil
	}
	if isMultipleOf(quantity, size) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, quantity.String(), fmt.Sprintf("%s is not positive integer multiple of %s", quantity.String(), name))}
}

// isMultipleOf reports whether the quantity, rounded up to a whole number, is made
// of pages of the size, which has to be a positive whole number. The size is part
// of the name of a resource, so nothing has bounded it yet.
func isMultipleOf(quantity resource.Quantity, size string) bool {
	if requestlimits.CheckQuantity(size) != "" {
		return false
	}
	page, err := resource.ParseQuantity(size)
	if err != nil || page.Sign() <= 0 {
		return false
	}
	pageSize, exact := roundedUp(page)
	bytes, _ := roundedUp(quantity)
	return exact && bytes.Rem(bytes, pageSize).Sign() == 0
}

// roundedUp returns the quantity as a whole number, however large, and whether
// it is one.
func roundedUp(q resource.Quantity) (whole *big.Int, exact bool) {
	q = q.DeepCopy()
	exact = q.RoundUp(0)
	decimal := q.AsDec() // of a scale that is not positive by now
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(-int64(decimal.Scale())), nil)
	return power.Mul(power, decimal.UnscaledBig()), exact
}

// validateClaimReferences checks which of the Pod's resource claims, or which
// requests in them, a container uses. None may be used twice.
func validateClaimReferences(claims []corev1.ResourceClaim, known claimNames, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	whole, parts := sets.New[string](), map[string]sets.Set[string]{}
	for i, claim := range claims {
		path := path.Index(i)
		if claim.Name == "" {
			errs = append(errs, field.Required(path, ""))
			continue
		}
		switch {
		case whole.Has(claim.Name):
			errs = append(errs, field.Duplicate(path, claim.Name))
		case claim.Request == "":
			for range parts[claim.Name] {
				errs = append(errs, field.Duplicate(path, claim.Name))
			}
			whole.Insert(claim.Name)
		default:
			errs = append(errs, dnsLabel(path.Child("request"), claim.Request)...)
			if parts[claim.Name] == nil {
				parts[claim.Name] = sets.New[string]()
			}
			if parts[claim.Name].Has(claim.Request) {
				errs = append(errs, field.Duplicate(path, claim.Name+"/"+claim.Request))
			}
			parts[claim.Name].Insert(claim.Request)
		}
		if !known.Has(claim.Name) {
			err := field.NotFound(path, claim.Name)
			err.Detail = known.listed
			errs = append(errs, err)
		}
	}
	return errs
}

// claimNames are the names of the resource claims of a Pod.
type claimNames struct {
	sets.Set[string]
	// listed is the detail of errors about names that are not among these, which share it.
	listed string
}

// maxClaimsListed is how many names of claims an error lists, if they are not longer on average
// than names may be.
const maxClaimsListed = 100

func newClaimNames(claims []corev1.PodResourceClaim) claimNames {
	const text = "must be one of the names in pod.spec.resourceClaims"
	names, length := claimNames{Set: sets.New[string]()}, 0
	for i := range claims {
		if name := claims[i].Name; name != "" && !names.Has(name) {
			names.Insert(name)
			length += len(name)
		}
	}
	switch {
	case len(names.Set) == 0:
		names.listed = text + " which is empty"
	case len(names.Set) > maxClaimsListed || length > maxClaimsListed*validation.DNS1123LabelMaxLength:
		names.listed = fmt.Sprintf("%s, which are %d", text, len(names.Set))
	default:
		names.listed = text + ": " + strings.Join(sets.List(names.Set), ", ")
	}
	return names
}

// validateResourceClaims checks the claims that the Pod's containers can use.
func (s *podScope) validateResourceClaims(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, claim := range s.spec.ResourceClaims {
		path := path.Index(i)
		if isMirror(s.meta) {
			errs = append(errs, field.Forbidden(field.NewPath(""), "static pods do not support resource claims"))
			continue
		}
		switch {
		case claim.Name == "":
			errs = append(errs, field.Required(path.Child("name"), ""))
		case names.Has(claim.Name):
			errs = append(errs, field.Duplicate(path.Child("name"), claim.Name))
		default:
			errs = append(errs, dnsLabel(path.Child("name"), claim.Name)...)
			names.Insert(claim.Name)
		}
		switch {
		case claim.ResourceClaimName != nil && claim.ResourceClaimTemplateName != nil:
			errs = append(errs, field.Invalid(path, claim, "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"))
		case claim.ResourceClaimName == nil && claim.ResourceClaimTemplateName == nil:
			errs = append(errs, field.Invalid(path, claim, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"))
		}
		if claim.ResourceClaimName != nil {
			errs = append(errs, dnsSubdomain(path.Child("resourceClaimName"), *claim.ResourceClaimName)...)
		}
		if claim.ResourceClaimTemplateName != nil {
			errs = append(errs, dnsSubdomain(path.Child("resourceClaimTemplateName"), *claim.ResourceClaimTemplateName)...)
		}
	}
	return errs
}

// validateOverhead checks what the Pod uses in addition to its containers.
func validateOverhead(overhead corev1.ResourceList, path *field.Path) field.ErrorList {
	return validateResources(&corev1.ResourceRequirements{Limits: overhead}, ValidateContainerResourceName, claimNames{}, path)
}

// validatePodResources checks the resources of the Pod as a whole.
func (s *podScope) validatePodResources(path *field.Path) field.ErrorList {
	r, path := s.spec.Resources, path.Child("resources")
	if r == nil {
		return nil
	}
	if isWindows(s.spec) {
		return field.ErrorList{field.Forbidden(path, "may not be set for a windows pod")}
	}
	var errs field.ErrorList
	if r.Claims != nil {
		errs = append(errs, field.Forbidden(path.Child("claims"), "claims may not be set for Resources at pod-level"))
	}
	errs = append(errs, validateResources(r, validatePodResourceName, s.claims, path)...)
	return append(errs, validateContainersFit(s.spec, path)...)
}

func validatePodResourceName(name corev1.ResourceName, path *field.Path) field.ErrorList {
	errs := ValidateResourceName(name, path)
	if len(errs) == 0 && !resourcehelper.IsSupportedPodLevelResource(name) {
		errs = append(errs, field.NotSupported(path, name, sets.List(resourcehelper.SupportedPodLevelResources())))
	}
	return errs
}

// validateContainersFit checks that the containers together request no more
// than the Pod, and that none is limited to more. Huge pages are counted
// together for the limit too, because they cannot be overcommitted.
func validateContainersFit(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !corepod.CanBeSummed(spec) {
		return nil // another error, unless the Pod was stored without the limit
	}
	pod := &corev1.Pod{Spec: *spec}
	limits, requests := path.Child("limits"), path.Child("requests")
	sum := resourcehelper.AggregateContainerRequests(pod, resourcehelper.PodResourcesOptions{})
	for _, name := range sortedKeys(sum) {
		request, set := spec.Resources.Requests[name]
		if total := sum[name]; set && total.Cmp(request) > 0 {
			errs = append(errs, field.Invalid(requests.Key(string(name)), request.String(),
				fmt.Sprintf("must be greater than or equal to aggregate container requests of %s", total.String())))
		}
	}
	sum = resourcehelper.AggregateContainerLimits(pod, resourcehelper.PodResourcesOptions{})
	for _, name := range sortedKeys(sum) {
		limit, set := spec.Resources.Limits[name]
		if total := sum[name]; set && IsHugePageResource(name) && total.Cmp(limit) > 0 {
			errs = append(errs, field.Invalid(limits.Key(string(name)), limit.String(),
				fmt.Sprintf("must be greater than or equal to aggregate container limits of %s", total.String())))
		}
	}
	for i := range spec.Containers {
		for _, name := range sortedKeys(spec.Containers[i].Resources.Limits) {
			limit, set := spec.Resources.Limits[name]
			if own := spec.Containers[i].Resources.Limits[name]; set && own.Cmp(limit) > 0 {
				// kube-apiserver looks for the containers in the resources.
				path := path.Child("containers").Index(i).Key(string(name)).Child("limits")
				errs = append(errs, field.Invalid(path, own.String(), fmt.Sprintf("must be less than or equal to pod limits of %s", limit.String())))
			}
		}
	}
	return errs
}

// validateResizePolicy checks what happens to a container when its resources
// change.
func (s *podScope) validateResizePolicy(policies []corev1.ContainerResizePolicy, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[corev1.ResourceName]()
	for i, policy := range policies {
		if names.Has(policy.ResourceName) {
			errs = append(errs, field.Duplicate(path.Index(i), policy.ResourceName))
		}
		names.Insert(policy.ResourceName)
		// These name the list and not the item, as in kube-apiserver.
		errs = append(errs, requiredAndSupported(path, policy.ResourceName, corev1.ResourceCPU, corev1.ResourceMemory)...)
		errs = append(errs, requiredAndSupported(path, policy.RestartPolicy, corev1.NotRequired, corev1.RestartContainer)...)
		if s.spec.RestartPolicy == corev1.RestartPolicyNever && policy.RestartPolicy != corev1.NotRequired {
			errs = append(errs, field.Invalid(path, policy.RestartPolicy, "must be 'NotRequired' when pod `restartPolicy` is 'Never'"))
		}
	}
	return errs
}
