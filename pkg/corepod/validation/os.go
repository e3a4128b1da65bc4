// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/borough-io/borough/pkg/corepod"
)

func isWindows(spec *corev1.PodSpec) bool {
	return spec.OS != nil && spec.OS.Name == corev1.Windows
}

// validateOS checks that the Pod uses nothing that its operating system does not
// have.
func validateOS(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	if spec.OS == nil {
		return nil
	}
	switch spec.OS.Name {
	case corev1.Linux:
		return validateLinux(spec, path)
	case corev1.Windows:
		return validateWindows(spec, path)
	case "":
		return field.ErrorList{field.Required(path.Child("os", "name"), "")}
	default:
		return supported(path.Child("os"), spec.OS.Name, corev1.Linux, corev1.Windows)
	}
}

func validateLinux(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	forbid := func(path *field.Path) {
		errs = append(errs, field.Forbidden(path.Child("securityContext", "windowsOptions"), "windows options cannot be set for a linux pod"))
	}
	if spec.SecurityContext != nil && spec.SecurityContext.WindowsOptions != nil {
		forbid(path)
	}
	for path, c := range corepod.Containers(spec, path) {
		if c.SecurityContext != nil && c.SecurityContext.WindowsOptions != nil {
			forbid(path)
		}
	}
	return errs
}

func validateWindows(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	forbid := func(set bool, path *field.Path) {
		if set {
			errs = append(errs, field.Forbidden(path, "cannot be set for a windows pod"))
		}
	}
	sc, scPath := spec.SecurityContext, path.Child("securityContext")
	if sc == nil {
		sc = &corev1.PodSecurityContext{}
	}
	forbid(sc.AppArmorProfile != nil, scPath.Child("appArmorProfile"))
	forbid(sc.SELinuxOptions != nil, scPath.Child("seLinuxOptions"))
	forbid(sc.SeccompProfile != nil, scPath.Child("seccompProfile"))
	forbid(sc.FSGroup != nil, scPath.Child("fsGroup"))
	forbid(sc.FSGroupChangePolicy != nil, scPath.Child("fsGroupChangePolicy"))
	forbid(len(sc.Sysctls) > 0, scPath.Child("sysctls"))
	forbid(sc.RunAsUser != nil, scPath.Child("runAsUser"))
	forbid(sc.RunAsGroup != nil, scPath.Child("runAsGroup"))
	forbid(sc.SupplementalGroups != nil, scPath.Child("supplementalGroups"))
	forbid(sc.SupplementalGroupsPolicy != nil, scPath.Child("supplementalGroupsPolicy"))
	forbid(sc.SELinuxChangePolicy != nil, scPath.Child("seLinuxChangePolicy"))
	forbid(spec.HostUsers != nil, path.Child("hostUsers"))
	forbid(spec.HostPID, path.Child("hostPID"))
	forbid(spec.HostIPC, path.Child("hostIPC"))
	forbid(spec.ShareProcessNamespace != nil, path.Child("shareProcessNamespace"))

	for path, c := range corepod.Containers(spec, path) {
		sc, path := c.SecurityContext, path.Child("securityContext")
		if sc == nil {
			continue
		}
		forbid(sc.AppArmorProfile != nil, path.Child("appArmorProfile"))
		forbid(sc.SELinuxOptions != nil, path.Child("seLinuxOptions"))
		forbid(sc.SeccompProfile != nil, path.Child("seccompProfile"))
		forbid(sc.Capabilities != nil, path.Child("capabilities"))
		forbid(sc.ReadOnlyRootFilesystem != nil, path.Child("readOnlyRootFilesystem"))
		forbid(sc.Privileged != nil, path.Child("privileged"))
		forbid(sc.AllowPrivilegeEscalation != nil, path.Child("allowPrivilegeEscalation"))
		forbid(sc.ProcMount != nil, path.Child("procMount"))
		forbid(sc.RunAsUser != nil, path.Child("runAsUser"))
		forbid(sc.RunAsGroup != nil, path.Child("runAsGroup"))
	}
	return errs
}

// validateHostProcess checks that containers which are processes of a Windows
// host all are, and run in the network of the node.
func validateHostProcess(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	var podWide *bool
	if sc := spec.SecurityContext; sc != nil && sc.WindowsOptions != nil {
		podWide = sc.WindowsOptions.HostProcess
	}
	all, onHost := 0, 0
	for path, c := range corepod.Containers(spec, path) {
		all++
		own := podWide
		if sc := c.SecurityContext; sc != nil && sc.WindowsOptions != nil && sc.WindowsOptions.HostProcess != nil {
			own = sc.WindowsOptions.HostProcess
		}
		if own == nil {
			continue
		}
		if podWide != nil && *podWide != *own {
			errs = append(errs, field.Invalid(path.Child("securityContext", "windowsOptions", "hostProcess"), *own,
				fmt.Sprintf("pod hostProcess value must be identical if both are specified, was %v", *podWide)))
		}
		if *own {
			onHost++
		}
	}
	if onHost > 0 && onHost < all {
		errs = append(errs, field.Invalid(path, "", "If pod contains any hostProcess containers then all containers must be HostProcess containers"))
	}
	if onHost > 0 && !spec.HostNetwork {
		errs = append(errs, field.Invalid(path.Child("hostNetwork"), false, "hostNetwork must be true if pod contains any hostProcess containers"))
	}
	return errs
}

const maxGMSACredentialSpecKiB = 64

// validateWindowsOptions checks as whom a container runs on Windows.
func validateWindowsOptions(options *corev1.WindowsSecurityContextOptions, path *field.Path) field.ErrorList {
	if options == nil {
		return nil
	}
	var errs field.ErrorList
	if name := options.GMSACredentialSpecName; name != nil {
		errs = append(errs, invalid(path.Child("gmsaCredentialSpecName"), name, validation.IsDNS1123Subdomain(*name))...)
	}
	if spec, path := options.GMSACredentialSpec, path.Child("gmsaCredentialSpec"); spec != nil {
		switch n := len(*spec); {
		case n == 0:
			errs = append(errs, field.Invalid(path, spec, "gmsaCredentialSpec cannot be an empty string"))
		case n > maxGMSACredentialSpecKiB*1024:
			errs = append(errs, field.Invalid(path, spec, fmt.Sprintf("gmsaCredentialSpec size must be under %d KiB", maxGMSACredentialSpecKiB)))
		}
	}
	if name := options.RunAsUserName; name != nil {
		for _, msg := range isWindowsUserName(*name) {
			errs = append(errs, field.Invalid(path.Child("runAsUserName"), name, "runAsUserName"+msg))
		}
	}
	return errs
}

// The limits of user names in Windows and in Active Directory.
const (
	maxWindowsDomain = 255
	maxWindowsUser   = 104
)

var (
	controlCharacters    = regexp.MustCompile(`[[:cntrl:]]`)
	netBIOSName          = regexp.MustCompile(`^[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}$`)
	windowsDNSName       = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$`)
	windowsDotsAndSpaces = regexp.MustCompile(`^[. ]+$`)
)

const windowsUserForbidden = `"/\:;|=,+*?<>@[]`

// isWindowsUserName says what is wrong with the name of a user, which may have a
// domain and a backslash before it.
func isWindowsUserName(name string) []string {
	domain, user, hasDomain := strings.Cut(name, `\`)
	if !hasDomain {
		domain, user = "", name
	}
	switch {
	case name == "":
		return []string{" cannot be an empty string"}
	case controlCharacters.MatchString(name):
		return []string{" cannot contain control characters"}
	case strings.Contains(user, `\`):
		return []string{" cannot contain more than one backslash"}
	}
	var msgs []string
	if len(domain) > maxWindowsDomain {
		msgs = append(msgs, fmt.Sprintf("'s Domain length must be under %d characters", maxWindowsDomain+1))
	}
	if hasDomain && !netBIOSName.MatchString(domain) && !windowsDNSName.MatchString(domain) {
		msgs = append(msgs, "'s Domain doesn't match the NetBios nor the DNS format")
	}
	if user == "" {
		msgs = append(msgs, "'s User cannot be empty")
	} else if len(user) > maxWindowsUser {
		msgs = append(msgs, fmt.Sprintf("'s User length must not be longer than %d characters", maxWindowsUser))
	}
	if windowsDotsAndSpaces.MatchString(user) {
		msgs = append(msgs, "'s User cannot contain only periods or spaces")
	}
	if strings.ContainsAny(user, windowsUserForbidden) {
		msgs = append(msgs, "'s User cannot contain the following characters: "+windowsUserForbidden)
	}
	return msgs
}
