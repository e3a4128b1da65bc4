// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/borough-io/borough/pkg/corepod"
)

func validateEnv(vars []corev1.EnvVar, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range vars {
		env, path := &vars[i], path.Index(i)
		errs = append(errs, requiredAnd(path.Child("name"), env.Name, envVarName)...)
		if env.ValueFrom != nil {
			errs = append(errs, validateEnvSource(env, path.Child("valueFrom"))...)
		}
	}
	return errs
}

func validateEnvSource(env *corev1.EnvVar, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	from, sources := env.ValueFrom, 0
	for _, m := range []member{
		memberOf("fieldRef", from.FieldRef, func(ref *corev1.ObjectFieldSelector, path *field.Path) field.ErrorList {
			return validateFieldRef(ref, envFields, path)
		}),
		memberOf("resourceFieldRef", from.ResourceFieldRef, validateResourceFieldRef),
		memberOf("configMapKeyRef", from.ConfigMapKeyRef, func(ref *corev1.ConfigMapKeySelector, path *field.Path) field.ErrorList {
			return validateKeyRef(ref.Name, ref.Key, path)
		}),
		memberOf("secretKeyRef", from.SecretKeyRef, func(ref *corev1.SecretKeySelector, path *field.Path) field.ErrorList {
			return validateKeyRef(ref.Name, ref.Key, path)
		}),
		memberOf("fileKeyRef", from.FileKeyRef, validateFileKeyRef),
	} {
		if m.set {
			sources++
			errs = append(errs, m.validate(path.Child(m.name))...)
		}
	}
	switch {
	case sources == 0:
		errs = append(errs, field.Invalid(path, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"))
	case env.Value != "":
		errs = append(errs, field.Invalid(path, "", "may not be specified when `value` is not empty"))
	case sources > 1:
		errs = append(errs, field.Invalid(path, "", "may not have more than one field specified at a time"))
	}
	return errs
}

func validateEnvFrom(from []corev1.EnvFromSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range from {
		source, listPath, path := &from[i], path, path.Index(i)
		if source.Prefix != "" {
			errs = append(errs, envVarName(path.Child("prefix"), source.Prefix)...)
		}
		if ref := source.ConfigMapRef; ref != nil {
			errs = append(errs, validateEnvObjectName(ref.Name, path.Child("configMapRef", "name"))...)
		}
		if ref := source.SecretRef; ref != nil {
			errs = append(errs, validateEnvObjectName(ref.Name, path.Child("secretRef", "name"))...)
		}
		// These name the list and not the item, as in kube-apiserver.
		switch {
		case source.ConfigMapRef == nil && source.SecretRef == nil:
			errs = append(errs, field.Invalid(listPath, "", "must specify one of: `configMapRef` or `secretRef`"))
		case source.ConfigMapRef != nil && source.SecretRef != nil:
			errs = append(errs, field.Invalid(listPath, "", "may not have more than one field specified at a time"))
		}
	}
	return errs
}

// validateEnvObjectName checks the name of a ConfigMap or Secret. It may end in
// a dash, as in kube-apiserver.
func validateEnvObjectName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return invalid(path, name, apivalidation.NameIsDNSSubdomain(name, true))
}

func validateKeyRef(name, key string, path *field.Path) field.ErrorList {
	errs := dnsSubdomain(path.Child("name"), name)
	if key == "" {
		return append(errs, field.Required(path.Child("key"), ""))
	}
	return append(errs, invalid(path.Child("key"), key, validation.IsConfigMapKey(key))...)
}

func validateFileKeyRef(ref *corev1.FileKeySelector, path *field.Path) field.ErrorList {
	errs := requiredAnd(path.Child("key"), ref.Key, envVarName)
	errs = append(errs, requiredAnd(path.Child("volumeName"), ref.VolumeName, dnsLabel)...)
	if ref.Path == "" {
		errs = append(errs, field.Required(path.Child("path"), ""))
	} else {
		errs = append(errs, validateNoBacksteps(ref.Path, path.Child("path"))...)
	}
	return errs
}

// validateEnvFileVolumes checks that files with environment variables are in
// empty directories, where only the Pod itself can have put them.
func validateEnvFileVolumes(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	emptyDir := make(map[string]bool, len(spec.Volumes))
	for i := range spec.Volumes {
		emptyDir[spec.Volumes[i].Name] = spec.Volumes[i].EmptyDir != nil
	}
	for path, c := range corepod.Containers(spec, path) {
		for i := range c.Env {
			from := c.Env[i].ValueFrom
			if from == nil || from.FileKeyRef == nil {
				continue
			}
			name, path := from.FileKeyRef.VolumeName, path.Child("env").Index(i).Child("valueFrom", "fileKeyRef", "volumeName")
			if is, found := emptyDir[name]; !found {
				errs = append(errs, field.NotFound(path, name))
			} else if !is {
				errs = append(errs, field.Invalid(path, name, "referenced volume must be of type emptyDir"))
			}
		}
	}
	return errs
}

// The fields of a Pod that it can read through the downward API, from the
// environment and from files.
var (
	downwardFields = sets.New(
		"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid",
		"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
		"status.hostIP", "status.hostIPs", "status.phase", "status.podIP", "status.podIPs",
	)
	envFields = sets.New(
		"metadata.name", "metadata.namespace", "metadata.uid",
		"spec.nodeName", "spec.serviceAccountName",
		"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
	)
	fileFields = sets.New(
		"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid",
	)
)

// validateFieldRef checks that the field is one of the allowed ones, or a single
// label or annotation.
func validateFieldRef(ref *corev1.ObjectFieldSelector, allowed sets.Set[string], path *field.Path) field.ErrorList {
	if ref.APIVersion == "" {
		return field.ErrorList{field.Required(path.Child("apiVersion"), "")}
	}
	if ref.FieldPath == "" {
		return field.ErrorList{field.Required(path.Child("fieldPath"), "")}
	}
	unknown := func(format string, arg string) field.ErrorList {
		return field.ErrorList{field.Invalid(path.Child("fieldPath"), ref.FieldPath, "error converting fieldPath: "+fmt.Sprintf(format, arg))}
	}
	if ref.APIVersion != "v1" {
		return unknown("unsupported pod version: %s", ref.APIVersion)
	}
	if list, key, ok := splitSubscript(ref.FieldPath); ok {
		switch list {
		case "metadata.annotations":
			return qualifiedName(path, strings.ToLower(key))
		case "metadata.labels":
			return qualifiedName(path, key)
		}
		return unknown("field label does not support subscript: %s", ref.FieldPath)
	}
	name := ref.FieldPath
	if name == "spec.host" { // what the first clients of v1 sent
		name = "spec.nodeName"
	}
	if !downwardFields.Has(name) {
		return unknown("field label not supported: %s", name)
	}
	if !allowed.Has(name) {
		return field.ErrorList{field.NotSupported(path.Child("fieldPath"), name, sets.List(allowed))}
	}
	return nil
}

// splitSubscript splits list['key'] into list and key.
func splitSubscript(fieldPath string) (list, key string, ok bool) {
	rest, ok := strings.CutSuffix(fieldPath, "']")
	if !ok {
		return "", "", false
	}
	list, key, ok = strings.Cut(rest, "['")
	return list, key, ok && list != ""
}

// resourceFields are the resources of a container that it can read through the
// downward API, besides its huge pages.
var resourceFields = sets.New(
	"limits.cpu", "limits.memory", "limits.ephemeral-storage",
	"requests.cpu", "requests.memory", "requests.ephemeral-storage",
)

func isHugePagesField(resource string) bool {
	return strings.HasPrefix(resource, "limits."+corev1.ResourceHugePagesPrefix) ||
		strings.HasPrefix(resource, "requests."+corev1.ResourceHugePagesPrefix)
}

func validateResourceFieldRef(ref *corev1.ResourceFieldSelector, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if ref.Resource == "" {
		errs = append(errs, field.Required(path.Child("resource"), ""))
	} else if !resourceFields.Has(ref.Resource) && !isHugePagesField(ref.Resource) {
		errs = append(errs, field.NotSupported(path.Child("resource"), ref.Resource, sets.List(resourceFields)))
	}
	return append(errs, validateDivisor(ref, path.Child("divisor"))...)
}

var (
	cpuDivisors  = sets.New("1m", "1")
	byteDivisors = sets.New("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
)

// validateDivisor checks the unit that a resource is to be read in.
func validateDivisor(ref *corev1.ResourceFieldSelector, path *field.Path) field.ErrorList {
	if ref.Divisor.IsZero() {
		return nil
	}
	allowed, list, what := byteDivisors, "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei", ""
	switch _, name, _ := strings.Cut(ref.Resource, "."); {
	case isHugePagesField(ref.Resource):
		what = "hugepages"
	case !resourceFields.Has(ref.Resource):
		return nil
	case name == "cpu":
		allowed, list, what = cpuDivisors, "1m and 1", "cpu"
	case name == "memory":
		what = "memory"
	default:
		what = "local ephemeral storage"
	}
	if allowed.Has(ref.Divisor.String()) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, ref.Resource, fmt.Sprintf("only divisor's values %s are supported with the %s resource", list, what))}
}
