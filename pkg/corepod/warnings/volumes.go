// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package warnings

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (w *warnings) addVolumes(volumes []corev1.Volume) {
	for i := range volumes {
		volume, path := &volumes[i], field.NewPath("spec", "volumes").Index(i)
		for _, old := range []struct {
			used          bool
			name, message string
		}{
			{volume.PhotonPersistentDisk != nil, "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"},
			{volume.GitRepo != nil, "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"},
			{volume.ScaleIO != nil, "scaleIO", "deprecated in v1.16, non-functional in v1.22+"},
			{volume.Flocker != nil, "flocker", "deprecated in v1.22, non-functional in v1.25+"},
			{volume.StorageOS != nil, "storageOS", "deprecated in v1.22, non-functional in v1.25+"},
			{volume.Quobyte != nil, "quobyte", "deprecated in v1.22, non-functional in v1.25+"},
			{volume.Glusterfs != nil, "glusterfs", "deprecated in v1.25, non-functional in v1.26+"},
			{volume.CephFS != nil, "cephfs", "deprecated in v1.28, non-functional in v1.31+"},
			{volume.RBD != nil, "rbd", "deprecated in v1.28, non-functional in v1.31+"},
		} {
			if old.used {
				w.add(path.Child(old.name), "%s", old.message)
			}
		}
		if volume.Ephemeral != nil && volume.Ephemeral.VolumeClaimTemplate != nil {
			resources, path := volume.Ephemeral.VolumeClaimTemplate.Spec.Resources, path.Child("ephemeral", "volumeClaimTemplate", "spec", "resources")
			w.addFractions(path.Child("requests"), resources.Requests, corev1.ResourceStorage)
			w.addFractions(path.Child("limits"), resources.Limits, corev1.ResourceStorage)
		}
	}
	for i := range volumes {
		w.addOverlaps(&volumes[i])
	}
}

// addOverlaps warns of files of a volume of which one would take the place of
// another, or of the directory that another is in.
func (w *warnings) addOverlaps(volume *corev1.Volume) {
	switch {
	case volume.ConfigMap != nil:
		w.addOverlappingFiles(volume.Name, "ConfigMap "+quoted(volume.ConfigMap.Name).String(), keyFiles("", volume.ConfigMap.Items))
	case volume.Secret != nil:
		w.addOverlappingFiles(volume.Name, "Secret "+quoted(volume.Secret.SecretName).String(), keyFiles("", volume.Secret.Items))
	case volume.DownwardAPI != nil:
		w.addOverlappingFiles(volume.Name, "DownwardAPI", downwardFiles("", volume.DownwardAPI.Items))
	case volume.Projected != nil:
		var files []file
		for i := range volume.Projected.Sources {
			source := &volume.Projected.Sources[i]
			if *source == (corev1.VolumeProjection{}) {
				w.addPlain("volume %s (Projected) has no sources provided", quoted(volume.Name))
			}
			files = append(files, projectedFiles(source)...)
		}
		w.addOverlappingFiles(volume.Name, "Projected", files)
	}
}

// file is a path in a volume, and which source of the volume puts a file there.
type file struct{ path, source string }

func (f file) String() string {
	if f.source == "" {
		return quoted(f.path).String()
	}
	return quoted(f.path).String() + " (" + f.source + ")"
}

func (f file) overlaps(other file) bool { return f.isIn(other) || other.isIn(f) }

// isIn reports whether the paths are equal, or the other one is a directory of this one.
func (f file) isIn(other file) bool {
	rest, found := strings.CutPrefix(f.path, other.path)
	return found && other.path != "" && (rest == "" || rest[0] == '/')
}

// addOverlappingFiles compares the first maxCompared files of a volume.
func (w *warnings) addOverlappingFiles(volume, description string, files []file) {
	for i := range min(len(files), maxCompared) {
		files[i].path = strings.TrimRight(files[i].path, "/")
		for _, earlier := range files[:i] {
			if files[i].overlaps(earlier) {
				w.addPlain("volume %s (%s): overlapping paths: %s with %s", quoted(volume), description, files[i], earlier)
			}
		}
	}
}

func keyFiles(source string, items []corev1.KeyToPath) []file {
	files := make([]file, len(items))
	for i := range items {
		files[i] = file{items[i].Path, source}
	}
	return files
}

func downwardFiles(source string, items []corev1.DownwardAPIVolumeFile) []file {
	files := make([]file, len(items))
	for i := range items {
		files[i] = file{items[i].Path, source}
	}
	return files
}

func projectedFiles(source *corev1.VolumeProjection) []file {
	switch {
	case source.ConfigMap != nil:
		return keyFiles("ConfigMap "+quoted(source.ConfigMap.Name).String(), source.ConfigMap.Items)
	case source.Secret != nil:
		return keyFiles("Secret "+quoted(source.Secret.Name).String(), source.Secret.Items)
	case source.DownwardAPI != nil:
		return downwardFiles("DownwardAPI", source.DownwardAPI.Items)
	case source.ServiceAccountToken != nil:
		return []file{{source.ServiceAccountToken.Path, "ServiceAccountToken"}}
	case source.ClusterTrustBundle != nil:
		bundle := source.ClusterTrustBundle
		var name string
		switch {
		case bundle.Name != nil:
			name = *bundle.Name
		case bundle.SignerName != nil:
			name = *bundle.SignerName
		}
		return []file{{bundle.Path, "ClusterTrustBundle " + quoted(name).String()}}
	case source.PodCertificate != nil:
		certificate := source.PodCertificate
		return []file{
			{certificate.CertificateChainPath, "PodCertificate chain"},
			{certificate.KeyPath, "PodCertificate key"},
			{certificate.CredentialBundlePath, "PodCertificate credential bundle"},
		}
	}
	return nil
}
