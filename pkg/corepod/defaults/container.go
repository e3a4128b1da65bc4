// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// SetDefaults_Container sets how the image is pulled and where the last words
// of the container are read from.
func SetDefaults_Container(obj *corev1.Container) {
	if obj.ImagePullPolicy == "" {
		obj.ImagePullPolicy = defaultPullPolicy(obj.Image)
	}
	if obj.TerminationMessagePath == "" {
		obj.TerminationMessagePath = corev1.TerminationMessagePathDefault
	}
	if obj.TerminationMessagePolicy == "" {
		obj.TerminationMessagePolicy = corev1.TerminationMessageReadFile
	}
}

// SetDefaults_EphemeralContainer sets what is set for every container.
func SetDefaults_EphemeralContainer(obj *corev1.EphemeralContainer) {
	SetDefaults_Container((*corev1.Container)(&obj.EphemeralContainerCommon))
}

// SetDefaults_Probe sets how often a probe runs and how often it has to succeed
// or fail to count.
func SetDefaults_Probe(obj *corev1.Probe) {
	if obj.TimeoutSeconds == 0 {
		obj.TimeoutSeconds = 1
	}
	if obj.PeriodSeconds == 0 {
		obj.PeriodSeconds = 10
	}
	if obj.SuccessThreshold == 0 {
		obj.SuccessThreshold = 1
	}
	if obj.FailureThreshold == 0 {
		obj.FailureThreshold = 3
	}
}

// SetDefaults_HTTPGetAction makes a probe or a lifecycle hook get / over HTTP.
func SetDefaults_HTTPGetAction(obj *corev1.HTTPGetAction) {
	if obj.Path == "" {
		obj.Path = "/"
	}
	if obj.Scheme == "" {
		obj.Scheme = corev1.URISchemeHTTP
	}
}

// SetDefaults_ObjectFieldSelector names the version that the field path is of.
// It is that of core/v1, whose Pod ours is.
func SetDefaults_ObjectFieldSelector(obj *corev1.ObjectFieldSelector) {
	if obj.APIVersion == "" {
		obj.APIVersion = "v1"
	}
}

// defaultPullPolicy is Always for an image whose tag is or defaults to latest,
// and IfNotPresent otherwise. An image that is no valid reference cannot be
// pulled at all and has no tag.
func defaultPullPolicy(image string) corev1.PullPolicy {
	parts := imageReference.FindStringSubmatch(image)
	if parts == nil || len(imageRepository(parts[1])) > maxImageRepository || imageID.MatchString(image) {
		return corev1.PullIfNotPresent
	}
	if tag, digest := parts[2], parts[3]; tag == "latest" || tag == "" && digest == "" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

// imageRepository returns the name of an image without the registry, as the
// registry knows it. What comes before the first slash is a registry if it looks
// like a host; otherwise the registry is Docker's, which keeps images without a
// slash under library.
func imageRepository(name string) string {
	first, rest, found := strings.Cut(name, "/")
	dockers := first == "docker.io" || first == "index.docker.io"
	switch {
	case found && !dockers && (first == "localhost" || strings.ContainsAny(first, ".:") || strings.ToLower(first) != first):
		return rest
	case found && dockers:
		name = rest
	}
	if !strings.Contains(name, "/") {
		name = "library/" + name
	}
	return name
}

// imageReference matches [domain[:port]/]path[:tag][@digest] as the distribution
// project defines it, and captures the name, the tag and the digest.
var imageReference = regexp.MustCompile(
	`^((?:(?:` + imageDomainLabel + `(?:\.` + imageDomainLabel + `)*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?/)?` +
		imagePathPart + `(?:/` + imagePathPart + `)*)` +
		`(?::(\w[\w.-]{0,127}))?` +
		`(?:@(sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}))?$`)

// imageID matches what would be a valid name if it were not that of an image's
// content.
var imageID = regexp.MustCompile(`^[a-f0-9]{64}$`)

const (
	imageDomainLabel = `(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])`
	imagePathPart    = `[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*`
	// maxImageRepository is how long the name may be without the registry.
	maxImageRepository = 255
)
