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
)

func validateDownwardAPI(downward *corev1.DownwardAPIVolumeSource, path *field.Path) field.ErrorList {
	errs := validateFileMode(downward.DefaultMode, path.Child("defaultMode"))
	for i := range downward.Items {
		// kube-apiserver's paths leave out the item.
		errs = append(errs, validateDownwardFile(&downward.Items[i], path)...)
	}
	return errs
}

func validateDownwardFile(file *corev1.DownwardAPIVolumeFile, path *field.Path) field.ErrorList {
	errs := required(path.Child("path"), file.Path)
	errs = append(errs, validateOwnPath(file.Path, path.Child("path"))...)
	switch {
	case file.FieldRef != nil:
		errs = append(errs, validateFieldRef(file.FieldRef, fileFields, path.Child("fieldRef"))...)
		if file.ResourceFieldRef != nil {
			errs = append(errs, field.Invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously"))
		}
	case file.ResourceFieldRef != nil:
		path := path.Child("resourceFieldRef")
		if file.ResourceFieldRef.ContainerName == "" {
			errs = append(errs, field.Required(path.Child("containerName"), ""))
			errs = append(errs, validateDivisor(file.ResourceFieldRef, path.Child("divisor"))...)
		} else {
			errs = append(errs, validateResourceFieldRef(file.ResourceFieldRef, path)...)
		}
	default:
		errs = append(errs, field.Required(path, "one of fieldRef and resourceFieldRef is required"))
	}
	return append(errs, validateFileMode(file.Mode, path.Child("mode"))...)
}

func validateProjected(projected *corev1.ProjectedVolumeSource, path *field.Path) field.ErrorList {
	errs := validateFileMode(projected.DefaultMode, path.Child("defaultMode"))
	p := projection{path: path, paths: sets.New[string]()}
	for i := range projected.Sources {
		errs = append(errs, p.validateSource(&projected.Sources[i], path.Child("sources").Index(i))...)
	}
	return errs
}

// projection puts the files of several sources into one volume, where they must
// not collide.
type projection struct {
	path  *field.Path
	paths sets.Set[string]
}

// place puts a file at a path. The error for a path that another file has names blame.
func (p *projection) place(target, blame string) field.ErrorList {
	if p.paths.Has(target) {
		return field.ErrorList{field.Invalid(p.path, blame, "conflicting duplicate paths")}
	}
	p.paths.Insert(target)
	return nil
}

func (p *projection) validateSource(source *corev1.VolumeProjection, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	sources := 0
	for _, m := range []member{
		memberOf("secret", source.Secret, func(secret *corev1.SecretProjection, path *field.Path) field.ErrorList {
			return p.validateKeys(secret.Name, secret.Items, path)
		}),
		memberOf("configMap", source.ConfigMap, func(configMap *corev1.ConfigMapProjection, path *field.Path) field.ErrorList {
			return p.validateKeys(configMap.Name, configMap.Items, path)
		}),
		memberOf("downwardAPI", source.DownwardAPI, p.validateDownwardAPI),
		memberOf("serviceAccountToken", source.ServiceAccountToken, p.validateServiceAccountToken),
		memberOf("clusterTrustBundle", source.ClusterTrustBundle, p.validateClusterTrustBundle),
		memberOf("podCertificate", source.PodCertificate, p.validatePodCertificate),
	} {
		if m.set {
			sources++
			errs = append(errs, m.validate(path.Child(m.name))...)
		}
	}
	if sources > 1 {
		errs = append(errs, field.Forbidden(path, "may not specify more than 1 volume type per source"))
	}
	return errs
}

func (p *projection) validateKeys(name string, items []corev1.KeyToPath, path *field.Path) field.ErrorList {
	errs := required(path.Child("name"), name)
	for i := range items {
		errs = append(errs, validateKeyPath(&items[i], path.Child("items").Index(i))...)
		if items[i].Path != "" {
			errs = append(errs, p.place(items[i].Path, name)...)
		}
	}
	return errs
}

func (p *projection) validateDownwardAPI(downward *corev1.DownwardAPIProjection, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range downward.Items {
		file := &downward.Items[i]
		errs = append(errs, validateDownwardFile(file, path)...)
		if file.Path != "" {
			errs = append(errs, p.place(file.Path, file.Path)...)
		}
	}
	return errs
}

// What kube-apiserver's TokenRequest API can be asked for, in seconds.
const (
	minTokenExpiration = 10 * 60
	maxTokenExpiration = 1 << 32
)

func (p *projection) validateServiceAccountToken(token *corev1.ServiceAccountTokenProjection, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch expiration, path := token.ExpirationSeconds, path.Child("expirationSeconds"); {
	case expiration == nil:
		errs = append(errs, field.Required(path, ""))
	case *expiration < minTokenExpiration:
		errs = append(errs, field.Invalid(path, *expiration, "may not specify a duration less than 10 minutes"))
	case *expiration > maxTokenExpiration:
		errs = append(errs, field.Invalid(path, *expiration, "may not specify a duration larger than 2^32 seconds"))
	}
	// kube-apiserver looks for the path in the volume.
	path = p.path.Child("path")
	if token.Path == "" {
		return append(errs, field.Required(path, ""))
	}
	return append(errs, validateOwnPath(token.Path, path)...)
}

// validateServiceAccountTokens forbids tokens in a Pod without a service account.
func validateServiceAccountTokens(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.ServiceAccountName != "" {
		return nil
	}
	for i := range spec.Volumes {
		if spec.Volumes[i].Projected == nil {
			continue
		}
		for j, source := range spec.Volumes[i].Projected.Sources {
			if source.ServiceAccountToken != nil {
				path := path.Index(i).Child("projected", "sources").Index(j).Child("serviceAccountToken")
				errs = append(errs, field.Forbidden(path, "must not be specified when serviceAccountName is not set"))
			}
		}
	}
	return errs
}

func (p *projection) validateClusterTrustBundle(bundle *corev1.ClusterTrustBundleProjection, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case bundle.Name != nil && bundle.SignerName != nil:
		errs = append(errs, field.Invalid(path, bundle, "only one of name and signerName may be used"))
	case bundle.Name != nil:
		namePath := path.Child("name")
		if *bundle.Name == "" {
			errs = append(errs, field.Required(namePath, "must be a valid object name"))
		}
		for _, msg := range isClusterTrustBundleName(*bundle.Name) {
			errs = append(errs, field.Invalid(namePath, *bundle.Name, fmt.Sprintf("not a valid clustertrustbundlename: %v", msg)))
		}
		if bundle.LabelSelector != nil {
			errs = append(errs, field.Invalid(path.Child("labelSelector"), bundle.LabelSelector, "labelSelector must be unset if name is specified"))
		}
	case bundle.SignerName != nil:
		if *bundle.SignerName == "" {
			errs = append(errs, field.Required(path.Child("signerName"), "must be a valid signer name"))
		}
		errs = append(errs, validateSignerName(*bundle.SignerName, path.Child("signerName"))...)
		errs = append(errs, validateLabelSelector(bundle.LabelSelector, path.Child("labelSelector"))...)
	default:
		errs = append(errs, field.Required(path, "either name or signerName must be specified"))
	}
	errs = append(errs, required(path.Child("path"), bundle.Path)...)
	errs = append(errs, validateOwnPath(bundle.Path, path.Child("path"))...)
	return append(errs, p.place(bundle.Path, bundle.Path)...)
}

// isClusterTrustBundleName says what is wrong with the name of a bundle. That of
// a signer starts with the signer's name, with colons for slashes.
func isClusterTrustBundleName(name string) []string {
	if i := strings.LastIndex(name, ":"); i >= 0 {
		prefix := name[:i]
		switch {
		case prefix == "":
			return []string{`ClusterTrustBundle without signer name must not have ":" in its name`}
		case strings.Contains(prefix, "/"):
			return []string{fmt.Sprintf("ClusterTrustBundle for signerName %s must be named with prefix %s:",
				strings.ReplaceAll(prefix, ":", "/"), strings.ReplaceAll(prefix, "/", ":"))}
		}
		name = name[i+1:]
	}
	return apivalidation.NameIsDNSSubdomain(name, false)
}

// How long a certificate for a Pod may be valid, in seconds.
const (
	minCertificateExpiration           = 60 * 60
	maxCertificateExpiration           = 91 * 24 * 60 * 60
	maxKubernetesCertificateExpiration = 24 * 60 * 60
)

func (p *projection) validatePodCertificate(cert *corev1.PodCertificateProjection, path *field.Path) field.ErrorList {
	errs := validateSignerName(cert.SignerName, path.Child("signerName"))
	errs = append(errs, validateUserAnnotations(cert.UserAnnotations, path.Child("userAnnotations"))...)
	errs = append(errs, supported(path.Child("keyType"), cert.KeyType,
		"RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")...)
	if expiration := cert.MaxExpirationSeconds; expiration != nil {
		path := path.Child("maxExpirationSeconds")
		limit := int32(maxCertificateExpiration)
		if host, _, _ := strings.Cut(cert.SignerName, "/"); host == "kubernetes.io" || strings.HasSuffix(host, ".kubernetes.io") {
			limit = maxKubernetesCertificateExpiration
		}
		switch {
		case *expiration < minCertificateExpiration:
			errs = append(errs, field.Invalid(path, *expiration, fmt.Sprintf("if provided, maxExpirationSeconds must be >= %d", minCertificateExpiration)))
		case *expiration > limit:
			errs = append(errs, field.Invalid(path, *expiration, fmt.Sprintf("if provided, maxExpirationSeconds must be <= %d", limit)))
		}
	}
	placed := false
	for _, f := range []struct{ name, target string }{
		{"credentialBundlePath", cert.CredentialBundlePath},
		{"keyPath", cert.KeyPath},
		{"certificateChainPath", cert.CertificateChainPath},
	} {
		if f.target != "" {
			placed = true
			errs = append(errs, validateOwnPath(f.target, path.Child(f.name))...)
			errs = append(errs, p.place(f.target, f.target)...)
		}
	}
	if !placed {
		errs = append(errs, field.Required(path, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"))
	}
	return errs
}

func validateUserAnnotations(annotations map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range sortedKeys(annotations) {
		errs = append(errs, validation.IsDomainPrefixedKey(path, strings.ToLower(key))...)
	}
	if err := apivalidation.ValidateAnnotationsSize(annotations); err != nil {
		errs = append(errs, field.TooLong(path, "", apivalidation.TotalAnnotationSizeLimitB))
	}
	return errs
}

// The longest signer names are those of custom resources:
// <domain>/<namespace>.<name>.
const maxSignerName = validation.DNS1123SubdomainMaxLength + len("/") +
	validation.DNS1123LabelMaxLength + len(".") + validation.DNS1123SubdomainMaxLength

// validateSignerName checks for a domain and a path that is made of DNS names.
func validateSignerName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	domain, rest, ok := strings.Cut(name, "/")
	if !ok || strings.Contains(rest, "/") {
		return field.ErrorList{field.Invalid(path, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")}
	}
	var errs field.ErrorList
	if len(domain) > validation.DNS1123SubdomainMaxLength {
		errs = append(errs, field.TooLong(path, domain, validation.DNS1123SubdomainMaxLength))
	}
	errs = append(errs, validateDotted(domain, validation.IsDNS1123Label, path)...)
	if !strings.Contains(domain, ".") {
		errs = append(errs, field.Invalid(path, domain, "should be a domain with at least two segments separated by dots"))
	}
	errs = append(errs, validateDotted(rest, validation.IsDNS1123Subdomain, path)...)
	if len(name) > maxSignerName {
		errs = append(errs, field.TooLong(path, name, maxSignerName))
	}
	return errs
}

// validateDotted reports the first bad label between the dots of a name.
func validateDotted(name string, valid func(string) []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for label := range strings.SplitSeq(name, ".") {
		for _, msg := range valid(label) {
			errs = append(errs, field.Invalid(path, name, fmt.Sprintf("validating label %q: %s", label, msg)))
		}
		if len(errs) > 0 {
			break
		}
	}
	return errs
}
