// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilsysctl "k8s.io/component-helpers/node/util/sysctl"

	"github.com/borough-io/borough/pkg/corepod"
)

// validatePodSecurityContext checks what holds for all containers of the Pod.
func validatePodSecurityContext(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	sc := spec.SecurityContext
	if sc == nil {
		sc = &corev1.PodSecurityContext{}
	}
	errs = append(errs, validateGroupID(sc.FSGroup, path.Child("fsGroup"))...)
	errs = append(errs, validateUserID(sc.RunAsUser, path.Child("runAsUser"))...)
	errs = append(errs, validateGroupID(sc.RunAsGroup, path.Child("runAsGroup"))...)
	for i := range sc.SupplementalGroups {
		errs = append(errs, validateGroupID(&sc.SupplementalGroups[i], path.Child("supplementalGroups").Index(i))...)
	}
	errs = append(errs, validateSysctls(spec, sc.Sysctls, path.Child("sysctls"))...)
	if sc.FSGroupChangePolicy != nil {
		errs = append(errs, supported(path.Child("fsGroupChangePolicy"), *sc.FSGroupChangePolicy,
			corev1.FSGroupChangeAlways, corev1.FSGroupChangeOnRootMismatch)...)
	}
	errs = append(errs, validateSeccompProfile(sc.SeccompProfile, path.Child("seccompProfile"))...)
	errs = append(errs, validateWindowsOptions(sc.WindowsOptions, path.Child("windowsOptions"))...)
	errs = append(errs, validateAppArmorProfile(sc.AppArmorProfile, path.Child("appArmorProfile"))...)
	if sc.SupplementalGroupsPolicy != nil {
		errs = append(errs, supported(path.Child("supplementalGroupsPolicy"), *sc.SupplementalGroupsPolicy,
			corev1.SupplementalGroupsPolicyMerge, corev1.SupplementalGroupsPolicyStrict)...)
	}
	if sc.SELinuxChangePolicy != nil {
		errs = append(errs, supported(path.Child("seLinuxChangePolicy"), *sc.SELinuxChangePolicy,
			corev1.SELinuxChangePolicyMountOption, corev1.SELinuxChangePolicyRecursive)...)
	}
	return errs
}

func validateSharedProcesses(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	if share := spec.ShareProcessNamespace; share != nil && *share && spec.HostPID {
		return field.ErrorList{field.Invalid(path, *share, "ShareProcessNamespace and HostPID cannot both be enabled")}
	}
	return nil
}

// validateSecurityContext checks what a container may do and as whom it runs.
// Policies decide whether it may be privileged.
func (s *podScope) validateSecurityContext(sc *corev1.SecurityContext, path *field.Path) field.ErrorList {
	if sc == nil {
		return nil
	}
	errs := validateUserID(sc.RunAsUser, path.Child("runAsUser"))
	errs = append(errs, validateGroupID(sc.RunAsGroup, path.Child("runAsGroup"))...)
	if sc.ProcMount != nil {
		path := path.Child("procMount")
		errs = append(errs, supported(path, *sc.ProcMount, corev1.DefaultProcMount, corev1.UnmaskedProcMount)...)
		if *sc.ProcMount == corev1.UnmaskedProcMount && usesHostUsers(s.spec) {
			errs = append(errs, field.Invalid(path, *sc.ProcMount, "`hostUsers` must be false to use `Unmasked`"))
		}
	}
	errs = append(errs, validateSeccompProfile(sc.SeccompProfile, path.Child("seccompProfile"))...)
	if sc.AllowPrivilegeEscalation != nil && !*sc.AllowPrivilegeEscalation {
		if sc.Privileged != nil && *sc.Privileged {
			errs = append(errs, field.Invalid(path, sc, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"))
		}
		if addsSysAdmin(sc) && !s.hadSysAdmin {
			errs = append(errs, field.Invalid(path, sc, "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"))
		}
	}
	errs = append(errs, validateWindowsOptions(sc.WindowsOptions, path.Child("windowsOptions"))...)
	return append(errs, validateAppArmorProfile(sc.AppArmorProfile, path.Child("appArmorProfile"))...)
}

func addsSysAdmin(sc *corev1.SecurityContext) bool {
	return sc.Capabilities != nil && slices.Contains(sc.Capabilities.Add, "CAP_SYS_ADMIN")
}

// hasSysAdmin reports whether a container adds CAP_SYS_ADMIN without
// allowPrivilegeEscalation. As in kube-apiserver, containers that are added to the Pod
// may then do so, too. The spec is nil if there is no Pod.
func hasSysAdmin(spec *corev1.PodSpec) bool {
	if spec == nil {
		return false
	}
	for _, c := range corepod.Containers(spec, nil) {
		if sc := c.SecurityContext; sc != nil && addsSysAdmin(sc) && (sc.AllowPrivilegeEscalation == nil || !*sc.AllowPrivilegeEscalation) {
			return true
		}
	}
	return false
}

func isPrivileged(c *corev1.Container) bool {
	return c.SecurityContext != nil && c.SecurityContext.Privileged != nil && *c.SecurityContext.Privileged
}

func validateUserID(id *int64, path *field.Path) field.ErrorList {
	if id == nil {
		return nil
	}
	return invalid(path, *id, validation.IsValidUserID(*id))
}

func validateGroupID(id *int64, path *field.Path) field.ErrorList {
	if id == nil {
		return nil
	}
	return invalid(path, *id, validation.IsValidGroupID(*id))
}

const maxSysctlName = 253

var sysctlName = regexp.MustCompile(`^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`)

// validateSysctls checks the kernel parameters to set, none of which may be of a
// namespace that the Pod shares with its host.
func validateSysctls(spec *corev1.PodSpec, sysctls []corev1.Sysctl, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, sysctl := range sysctls {
		path := path.Index(i).Child("name")
		switch {
		case sysctl.Name == "":
			errs = append(errs, field.Required(path, ""))
		case len(sysctl.Name) > maxSysctlName || !sysctlName.MatchString(sysctl.Name):
			errs = append(errs, field.Invalid(path, sysctl.Name, fmt.Sprintf("must have at most %d characters and match regex %s", maxSysctlName, sysctlName)))
		case names.Has(sysctl.Name):
			errs = append(errs, field.Duplicate(path, sysctl.Name))
		}
		names.Insert(sysctl.Name)
		switch namespace, _, _ := utilsysctl.GetNamespace(sysctl.Name); {
		case spec.HostNetwork && namespace == utilsysctl.NetNamespace:
			errs = append(errs, field.Invalid(path, sysctl.Name, "may not be specified when 'hostNetwork' is true"))
		case spec.HostIPC && namespace == utilsysctl.IPCNamespace:
			errs = append(errs, field.Invalid(path, sysctl.Name, "may not be specified when 'hostIPC' is true"))
		}
	}
	return errs
}

func validateSeccompProfile(profile *corev1.SeccompProfile, path *field.Path) field.ErrorList {
	if profile == nil {
		return nil
	}
	var errs field.ErrorList
	if profile.Type == "" {
		errs = append(errs, field.Required(path.Child("type"), "type is required when seccompProfile is set"))
	} else {
		errs = append(errs, supported(path.Child("type"), profile.Type,
			corev1.SeccompProfileTypeLocalhost, corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeUnconfined)...)
	}
	path = path.Child("localhostProfile")
	switch localhost := profile.Type == corev1.SeccompProfileTypeLocalhost; {
	case localhost && profile.LocalhostProfile == nil:
		errs = append(errs, field.Required(path, "must be set when seccomp type is Localhost"))
	case localhost:
		errs = append(errs, validateDescendingPath(*profile.LocalhostProfile, path)...)
	case profile.LocalhostProfile != nil:
		errs = append(errs, field.Invalid(path, profile, "can only be set when seccomp type is Localhost"))
	}
	return errs
}

const maxAppArmorProfile = 4095 // PATH_MAX without the terminating zero

func validateAppArmorProfile(profile *corev1.AppArmorProfile, path *field.Path) field.ErrorList {
	if profile == nil {
		return nil
	}
	var errs field.ErrorList
	typePath, path := path.Child("type"), path.Child("localhostProfile")
	switch profile.Type {
	case corev1.AppArmorProfileTypeLocalhost:
		if profile.LocalhostProfile == nil {
			return field.ErrorList{field.Required(path, "must be set when AppArmor type is Localhost")}
		}
		name := *profile.LocalhostProfile
		if strings.TrimSpace(name) != name {
			errs = append(errs, field.Invalid(path, name, "must not be padded with whitespace"))
		} else if name == "" {
			errs = append(errs, field.Required(path, "must be set when AppArmor type is Localhost"))
		}
		if len(name) > maxAppArmorProfile {
			errs = append(errs, field.TooLong(path, name, maxAppArmorProfile))
		}
	case corev1.AppArmorProfileTypeRuntimeDefault, corev1.AppArmorProfileTypeUnconfined:
		if profile.LocalhostProfile != nil {
			errs = append(errs, field.Invalid(path, profile.LocalhostProfile, "can only be set when AppArmor type is Localhost"))
		}
	case "":
		errs = append(errs, field.Required(typePath, "type is required when appArmorProfile is set"))
	default:
		errs = append(errs, supported(typePath, profile.Type,
			corev1.AppArmorProfileTypeLocalhost, corev1.AppArmorProfileTypeRuntimeDefault, corev1.AppArmorProfileTypeUnconfined)...)
	}
	return errs
}

// usesHostUsers reports whether the Pod runs in the user namespace of the node.
func usesHostUsers(spec *corev1.PodSpec) bool {
	return spec.HostUsers == nil || *spec.HostUsers
}

// validateUserNamespace checks that a Pod with its own user namespace shares no
// other namespace with its node and uses no block devices, whose owners cannot be
// mapped.
func validateUserNamespace(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	if usesHostUsers(spec) {
		return nil
	}
	const msg = "when `hostUsers` is false"
	var errs field.ErrorList
	if spec.HostNetwork {
		errs = append(errs, field.Forbidden(path.Child("hostNetwork"), msg))
	}
	// This is how kube-apiserver spells these two.
	if spec.HostPID {
		errs = append(errs, field.Forbidden(path.Child("HostPID"), msg))
	}
	if spec.HostIPC {
		errs = append(errs, field.Forbidden(path.Child("HostIPC"), msg))
	}
	for path, c := range corepod.Containers(spec, path) {
		if len(c.VolumeDevices) > 0 {
			errs = append(errs, field.Forbidden(path.Child("volumeDevices"), msg))
		}
	}
	return errs
}
