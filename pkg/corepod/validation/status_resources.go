// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/borough-io/borough/pkg/corepod"
)

// validateResourceClaimStatuses checks which claims were made for those that
// the Pod asks for.
func validateResourceClaimStatuses(pod *corev1.Pod, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	asked, seen := sets.New[string](), sets.New[string]()
	for _, claim := range pod.Spec.ResourceClaims {
		asked.Insert(claim.Name)
	}
	for i, status := range pod.Status.ResourceClaimStatuses {
		path := path.Index(i)
		if !asked.Has(status.Name) {
			errs = append(errs, field.Invalid(path.Child("name"), status.Name, "must match the name of an entry in `spec.resourceClaims`"))
		}
		errs = append(errs, insertUnique(seen, path.Child("name"), status.Name)...)
		if status.ResourceClaimName != nil {
			errs = append(errs, dnsSubdomain(path.Child("resourceClaimName"), *status.ResourceClaimName)...)
		}
	}
	return errs
}

// validateExtendedResourceClaimStatus checks which requests of a claim stand for
// extended resources that the containers request.
func validateExtendedResourceClaimStatus(pod *corev1.Pod, path *field.Path) field.ErrorList {
	status := pod.Status.ExtendedResourceClaimStatus
	if status == nil {
		return nil
	}
	var errs field.ErrorList
	requests := map[string]corev1.ResourceList{}
	for _, c := range corepod.ContainersWithResources(&pod.Spec) {
		requests[c.Name] = c.Resources.Requests
	}
	mappings := path.Child("requestMappings")
	if len(status.RequestMappings) == 0 {
		errs = append(errs, field.Required(mappings, "at least one request mapping is required"))
	}
	seen := sets.New[corev1.ContainerExtendedResourceRequest]()
	for i, m := range status.RequestMappings {
		container, resource, request := mappings.Index(i).Child("containerName"), mappings.Index(i).Child("resourceName"), mappings.Index(i).Child("requestName")
		if list, found := requests[m.ContainerName]; !found {
			errs = append(errs, field.Invalid(container, m.ContainerName, "must match the name of an entry in spec.initContainers.name or spec.containers.name"))
		} else if _, requested := list[corev1.ResourceName(m.ResourceName)]; !requested {
			errs = append(errs, field.Invalid(resource, m.ResourceName, "must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests"))
		}
		// kube-apiserver's path leaves out the mapping.
		errs = append(errs, dnsLabel(path.Child("requestName"), m.RequestName)...)
		if seen.Has(m) {
			errs = append(errs,
				field.Duplicate(container, m.ContainerName),
				field.Duplicate(resource, m.ResourceName),
				field.Duplicate(request, m.RequestName))
		}
		seen.Insert(m)
	}
	return append(errs, requiredAnd(path.Child("resourceClaimName"), status.ResourceClaimName, dnsSubdomain)...)
}

// validateResourceHealth checks the health of the devices that containers have got. The
// extended claim, if not nil, stands for extended resources that they request.
func validateResourceHealth(statuses []corev1.ContainerStatus, containers []corev1.Container, extended *corev1.PodExtendedResourceClaimStatus, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	byName := containersByName(containers)
	extendedClaims := extendedClaimReferences(extended, byName)
	known := map[string]sets.Set[string]{} // by container, which several statuses may name
	for i, status := range statuses {
		c := byName[status.Name]
		claims := known[status.Name]
		if c != nil && claims == nil && len(status.AllocatedResourcesStatus) > 0 {
			claims = claimReferences(c.Resources.Claims).Union(extendedClaims[c.Name])
			known[status.Name] = claims
		}
		for j, allocated := range status.AllocatedResourcesStatus {
			path := path.Index(i).Child("allocatedResourcesStatus").Index(j)
			if c != nil { // a container that is not there may have gone
				errs = append(errs, validateAllocatedName(allocated.Name, c.Resources.Requests, claims, path.Child("name"))...)
			}
			seen := sets.New[corev1.ResourceID]()
			for k, r := range allocated.Resources {
				path := path.Child("resources").Index(k)
				errs = append(errs, supported(path.Child("health"), r.Health,
					corev1.ResourceHealthStatusHealthy, corev1.ResourceHealthStatusUnhealthy, corev1.ResourceHealthStatusUnknown)...)
				if message, path := r.Message, path.Child("message"); message != nil {
					if *message == "" {
						errs = append(errs, field.Required(path, "must be non-empty if specified"))
					} else if len(*message) > corev1.ResourceHealthMessageMaxLength {
						errs = append(errs, field.TooLong(path, *message, corev1.ResourceHealthMessageMaxLength))
					}
				}
				if seen.Has(r.ResourceID) {
					errs = append(errs, field.Duplicate(path.Child("resourceID"), r.ResourceID))
				}
				seen.Insert(r.ResourceID)
			}
		}
	}
	return errs
}

// validateAllocatedName checks for a resource that the container requests, or a
// claim that it uses.
func validateAllocatedName(name corev1.ResourceName, requests corev1.ResourceList, claims sets.Set[string], path *field.Path) field.ErrorList {
	claim, isClaim := strings.CutPrefix(string(name), "claim:")
	if !isClaim {
		if _, requested := requests[name]; requested {
			return nil
		}
		return field.ErrorList{field.Invalid(path, name, "must match one of the container's resource requests")}
	}
	if claims.Has(claim) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, name,
		"must match one of the container's resource claims as 'claim:<claimName>/<requestName>' when container.resources.claims[*].request is set or 'claim:<claimName>' when it is empty")}
}

// claimReferences returns the names of the claims that a container uses, each
// followed by the request in it where only that is used.
func claimReferences(claims []corev1.ResourceClaim) sets.Set[string] {
	references := sets.New[string]()
	for _, c := range claims {
		if c.Request != "" {
			references.Insert(c.Name + "/" + c.Request)
		} else {
			references.Insert(c.Name)
		}
	}
	return references
}

// extendedClaimReferences returns the references to requests of the extended claim, by
// the name of the container that requests the resource.
func extendedClaimReferences(extended *corev1.PodExtendedResourceClaimStatus, containers map[string]*corev1.Container) map[string]sets.Set[string] {
	if extended == nil || extended.ResourceClaimName == "" || len(extended.ResourceClaimName) > content.DNS1123SubdomainMaxLength {
		return nil // what is too long is an error, and would be repeated for each mapping
	}
	references := map[string]sets.Set[string]{}
	for _, m := range extended.RequestMappings {
		c := containers[m.ContainerName]
		if c == nil || m.RequestName == "" {
			continue
		}
		if request := c.Resources.Requests[corev1.ResourceName(m.ResourceName)]; request.IsZero() {
			continue
		}
		if references[c.Name] == nil {
			references[c.Name] = sets.New[string]()
		}
		references[c.Name].Insert(extended.ResourceClaimName + "/" + m.RequestName)
	}
	return references
}

func forbidResourceHealth(statuses []corev1.ContainerStatus, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range statuses {
		if len(statuses[i].AllocatedResourcesStatus) > 0 {
			errs = append(errs, field.Forbidden(path.Index(i).Child("allocatedResourcesStatus"), "must not be specified in container status"))
		}
	}
	return errs
}
