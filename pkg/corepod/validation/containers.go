// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/borough-io/borough/pkg/corepod"
)

// validateContainers checks the ordinary containers.
func (s *podScope) validateContainers(path *field.Path) field.ErrorList {
	if len(s.spec.Containers) == 0 {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	names := sets.New[string]()
	for i := range s.spec.Containers {
		c, path := &s.spec.Containers[i], path.Index(i)
		errs = append(errs, s.validateContainer(c, path)...)
		// A name that an init or ephemeral container has too is reported there.
		errs = append(errs, insertUnique(names, path.Child("name"), c.Name)...)
		errs = append(errs, s.validateHooksAndProbes(c, path)...)
		errs = append(errs, validateContainerRestartPolicy(c, path)...)
		errs = append(errs, validateRestartRules(c.RestartPolicyRules, path.Child("restartPolicyRules"))...)
	}
	return append(errs, validateHostPortsUnique(s.spec.Containers, path)...)
}

// validateInitContainers checks what runs before the containers, and the
// sidecars, which are init containers that are always restarted.
func (s *podScope) validateInitContainers(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i := range s.spec.Containers {
		names.Insert(s.spec.Containers[i].Name)
	}
	for i := range s.spec.InitContainers {
		c, listPath, path := &s.spec.InitContainers[i], path, path.Index(i)
		errs = append(errs, s.validateContainer(c, path)...)
		errs = append(errs, validateContainerRestartPolicy(c, path)...)
		if c.RestartPolicy != nil {
			errs = append(errs, validateRestartRules(c.RestartPolicyRules, path.Child("restartPolicyRules"))...)
		}
		if names.Has(c.Name) {
			errs = append(errs, field.Duplicate(path.Child("name"), c.Name))
		} else if c.Name != "" {
			names.Insert(c.Name)
		}
		// Init containers run one by one, so each may use the same ports. The
		// path always has the index of the first one, as in kube-apiserver.
		errs = append(errs, validateHostPortsUnique(s.spec.InitContainers[i:i+1], listPath)...)

		if corepod.IsSidecar(c) {
			errs = append(errs, s.validateHooksAndProbes(c, path)...)
			continue
		}
		for _, f := range []struct {
			name string
			set  bool
		}{
			{"lifecycle", c.Lifecycle != nil},
			{"livenessProbe", c.LivenessProbe != nil},
			{"readinessProbe", c.ReadinessProbe != nil},
			{"startupProbe", c.StartupProbe != nil},
		} {
			if f.set {
				errs = append(errs, field.Forbidden(path.Child(f.name), "may not be set for init containers without restartPolicy=Always"))
			}
		}
		for j, policy := range c.ResizePolicy {
			if policy.RestartPolicy == corev1.RestartContainer {
				errs = append(errs, field.Invalid(path.Child("resizePolicy").Index(j).Child("restartPolicy"), policy.RestartPolicy,
					"must not be set to 'RestartContainer' for non-sidecar initContainers"))
			}
		}
	}
	return errs
}

// ephemeralContainerFields are those that an ephemeral container may have.
// Nothing may rely on it, so it has no ports, probes, resources and the like;
// fields that the API gains later are to be thought about first.
var ephemeralContainerFields = sets.New(
	"Name", "Image", "Command", "Args", "WorkingDir", "EnvFrom", "Env",
	"VolumeMounts", "VolumeDevices", "TerminationMessagePath", "TerminationMessagePolicy",
	"ImagePullPolicy", "SecurityContext", "Stdin", "StdinOnce", "TTY",
)

// validateEphemeralContainers checks the containers that were added to debug
// the others.
func (s *podScope) validateEphemeralContainers(path *field.Path) field.ErrorList {
	if len(s.spec.EphemeralContainers) == 0 {
		return nil
	}
	var errs field.ErrorList
	targets := sets.New[string]()
	for _, c := range corepod.ContainersWithResources(s.spec) {
		targets.Insert(c.Name)
	}
	names := targets.Clone()
	for i := range s.spec.EphemeralContainers {
		ec, path := &s.spec.EphemeralContainers[i], path.Index(i)
		c := (*corev1.Container)(&ec.EphemeralContainerCommon)
		errs = append(errs, s.validateContainer(c, path)...)
		errs = append(errs, validateImageNotPadded(c, path)...)
		errs = append(errs, insertUnique(names, path.Child("name"), ec.Name)...)
		if ec.TargetContainerName != "" && !targets.Has(ec.TargetContainerName) {
			errs = append(errs, field.NotFound(path.Child("targetContainerName"), ec.TargetContainerName))
		}
		errs = append(errs, allowFields(ec.EphemeralContainerCommon, ephemeralContainerFields,
			"cannot be set for an Ephemeral Container", path)...)
		// A subpath is a bind mount that stays until the Pod ends.
		for j, mount := range ec.VolumeMounts {
			mountPath := path.Child("volumeMounts").Index(j)
			if mount.SubPath != "" {
				errs = append(errs, field.Forbidden(mountPath.Child("subPath"), "cannot be set for an Ephemeral Container"))
			}
			if mount.SubPathExpr != "" {
				errs = append(errs, field.Forbidden(mountPath.Child("subPathExpr"), "cannot be set for an Ephemeral Container"))
			}
		}
	}
	return errs
}

// validateContainer checks what holds for containers of every type.
func (s *podScope) validateContainer(c *corev1.Container, path *field.Path) field.ErrorList {
	errs := requiredAnd(path.Child("name"), c.Name, dnsLabel)
	errs = append(errs, required(path.Child("image"), c.Image)...)
	errs = append(errs, requiredAndSupported(path.Child("terminationMessagePolicy"), c.TerminationMessagePolicy,
		corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)...)
	errs = append(errs, validatePorts(c.Ports, path.Child("ports"))...)
	errs = append(errs, validateEnv(c.Env, path.Child("env"))...)
	errs = append(errs, validateEnvFrom(c.EnvFrom, path.Child("envFrom"))...)
	errs = append(errs, s.validateVolumeMounts(c, path.Child("volumeMounts"))...)
	errs = append(errs, s.validateVolumeDevices(c, path.Child("volumeDevices"))...)
	errs = append(errs, validatePullPolicy(c.ImagePullPolicy, path.Child("imagePullPolicy"))...)
	errs = append(errs, validateResources(&c.Resources, ValidateContainerResourceName, s.claims, path.Child("resources"))...)
	errs = append(errs, s.validateResizePolicy(c.ResizePolicy, path.Child("resizePolicy"))...)
	errs = append(errs, s.validateSecurityContext(c.SecurityContext, path.Child("securityContext"))...)
	return errs
}

func validatePullPolicy(policy corev1.PullPolicy, path *field.Path) field.ErrorList {
	return requiredAndSupported(path, policy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
}

func validateImagesNotPadded(containers []corev1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range containers {
		errs = append(errs, validateImageNotPadded(&containers[i], path.Index(i))...)
	}
	return errs
}

func validateImageNotPadded(c *corev1.Container, path *field.Path) field.ErrorList {
	if strings.TrimSpace(c.Image) != c.Image {
		return field.ErrorList{field.Invalid(path.Child("image"), c.Image, "must not have leading or trailing whitespace")}
	}
	return nil
}

func validatePorts(ports []corev1.ContainerPort, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, port := range ports {
		path := path.Index(i)
		if port.Name != "" {
			if msgs := validation.IsValidPortName(port.Name); len(msgs) > 0 {
				errs = append(errs, invalid(path.Child("name"), port.Name, msgs)...)
			} else {
				errs = append(errs, insertUnique(names, path.Child("name"), port.Name)...)
			}
		}
		if port.ContainerPort == 0 {
			errs = append(errs, field.Required(path.Child("containerPort"), ""))
		} else {
			errs = append(errs, invalid(path.Child("containerPort"), port.ContainerPort, validation.IsValidPortNum(int(port.ContainerPort)))...)
		}
		if port.HostPort != 0 {
			errs = append(errs, invalid(path.Child("hostPort"), port.HostPort, validation.IsValidPortNum(int(port.HostPort)))...)
		}
		errs = append(errs, requiredAndSupported(path.Child("protocol"), port.Protocol,
			corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)...)
	}
	return errs
}

// validateHostPortsUnique checks that no two of the containers use the same host
// port.
func validateHostPortsUnique(containers []corev1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	used := sets.New[string]()
	for i := range containers {
		for j, port := range containers[i].Ports {
			if port.HostPort == 0 {
				continue
			}
			key := fmt.Sprintf("%s/%s/%d", port.Protocol, port.HostIP, port.HostPort)
			errs = append(errs, insertUnique(used, path.Index(i).Child("ports").Index(j).Child("hostPort"), key)...)
		}
	}
	return errs
}

const (
	maxRestartRules     = 20
	maxRestartExitCodes = 255
)

// validateContainerRestartPolicy checks the restart policy that the container
// has in place of its Pod's.
func validateContainerRestartPolicy(c *corev1.Container, path *field.Path) field.ErrorList {
	path = path.Child("restartPolicy")
	switch {
	case c.RestartPolicy != nil:
		return supported(path, *c.RestartPolicy,
			corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyNever, corev1.ContainerRestartPolicyOnFailure)
	case len(c.RestartPolicyRules) > 0:
		return field.ErrorList{field.Required(path, "must specify restartPolicy when restart rules are used")}
	}
	return nil
}

// validateRestartRules checks the exceptions to the restart policy.
func validateRestartRules(rules []corev1.ContainerRestartRule, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := len(rules); n > maxRestartRules {
		errs = append(errs, field.TooMany(path, n, maxRestartRules))
	}
	for i, rule := range rules {
		path := path.Index(i)
		errs = append(errs, supported(path.Child("action"), rule.Action,
			corev1.ContainerRestartRuleActionRestart, corev1.ContainerRestartRuleActionRestartAllContainers)...)
		path = path.Child("exitCodes")
		if rule.ExitCodes == nil {
			errs = append(errs, field.Required(path, "must be specified"))
			continue
		}
		errs = append(errs, supported(path.Child("operator"), rule.ExitCodes.Operator,
			corev1.ContainerRestartRuleOnExitCodesOpIn, corev1.ContainerRestartRuleOnExitCodesOpNotIn)...)
		if n := len(rule.ExitCodes.Values); n > maxRestartExitCodes {
			errs = append(errs, field.TooMany(path.Child("values"), n, maxRestartExitCodes))
		}
	}
	return errs
}

// insertUnique inserts a value, and returns an error if it is in the set already.
func insertUnique(seen sets.Set[string], path *field.Path, value string) field.ErrorList {
	if seen.Has(value) {
		return field.ErrorList{field.Duplicate(path, value)}
	}
	seen.Insert(value)
	return nil
}

// allowFields returns an error for every field of the struct that is set and whose
// name in Go is not one of the allowed ones.
func allowFields(value any, allowed sets.Set[string], msg string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	v := reflect.ValueOf(value)
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if !allowed.Has(name) && !v.Field(i).IsZero() {
			errs = append(errs, field.Forbidden(path.Child(strings.ToLower(name[:1])+name[1:]), msg))
		}
	}
	return errs
}
