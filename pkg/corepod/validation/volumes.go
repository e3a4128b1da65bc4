// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateVolumes checks the volumes and remembers the good ones, for the
// containers that mount them.
func (s *podScope) validateVolumes(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	created := sets.New[string]() // the claims that are created for ephemeral volumes
	if s.hasClaimNames() {
		for i := range s.spec.Volumes {
			if s.spec.Volumes[i].Ephemeral != nil {
				created.Insert(s.meta.Name + "-" + s.spec.Volumes[i].Name)
			}
		}
	}
	s.volumes = make(map[string]*corev1.VolumeSource, len(s.spec.Volumes))
	for i := range s.spec.Volumes {
		volume, path := &s.spec.Volumes[i], path.Index(i)
		volumeErrs := s.validateVolume(volume, path)
		if len(volumeErrs) == 0 {
			s.volumes[volume.Name] = &volume.VolumeSource
		}
		errs = append(errs, volumeErrs...)
		if claim := volume.PersistentVolumeClaim; claim != nil && created.Has(claim.ClaimName) {
			errs = append(errs, field.Invalid(path.Child("persistentVolumeClaim", "claimName"), claim.ClaimName,
				"must not reference a PVC that gets created for an ephemeral volume"))
		}
	}
	return errs
}

func (s *podScope) validateVolume(volume *corev1.Volume, path *field.Path) field.ErrorList {
	namePath := path.Child("name")
	errs := s.validateVolumeSource(volume, path)
	errs = append(errs, requiredAnd(namePath, volume.Name, dnsLabel)...)
	if s.volumes[volume.Name] != nil {
		errs = append(errs, field.Duplicate(namePath, volume.Name))
	}
	return errs
}

func (s *podScope) validateVolumeSource(volume *corev1.Volume, path *field.Path) field.ErrorList {
	v := &volume.VolumeSource
	errs := validateUnion(path, []member{
		memberOf("emptyDir", v.EmptyDir, validateEmptyDir),
		memberOf("hostPath", v.HostPath, validateHostPath),
		memberOf("gitRepo", v.GitRepo, validateGitRepo),
		memberOf("gcePersistentDisk", v.GCEPersistentDisk, validateGCEPersistentDisk).withErrorName("persistentDisk"),
		memberOf("awsElasticBlockStore", v.AWSElasticBlockStore, validateAWSElasticBlockStore),
		memberOf("secret", v.Secret, validateSecretVolume),
		memberOf("nfs", v.NFS, validateNFS),
		memberOf("iscsi", v.ISCSI, validateISCSI),
		memberOf("glusterfs", v.Glusterfs, validateGlusterfs),
		memberOf("flocker", v.Flocker, validateFlocker),
		memberOf("persistentVolumeClaim", v.PersistentVolumeClaim, validatePersistentVolumeClaim),
		memberOf("rbd", v.RBD, validateRBD),
		memberOf("cinder", v.Cinder, validateCinder),
		memberOf("cephFS", v.CephFS, validateCephFS).withErrorName("cephfs"),
		memberOf("quobyte", v.Quobyte, validateQuobyte),
		memberOf("downwarAPI", v.DownwardAPI, validateDownwardAPI).withErrorName("downwardAPI"),
		memberOf("fc", v.FC, validateFC),
		memberOf("flexVolume", v.FlexVolume, validateFlexVolume),
		memberOf("configMap", v.ConfigMap, validateConfigMapVolume),
		memberOf("azureFile", v.AzureFile, validateAzureFile),
		memberOf("vsphereVolume", v.VsphereVolume, validateVsphereVolume),
		memberOf("photonPersistentDisk", v.PhotonPersistentDisk, validatePhotonPersistentDisk),
		memberOf("portworxVolume", v.PortworxVolume, validatePortworxVolume),
		memberOf("azureDisk", v.AzureDisk, validateAzureDisk),
		memberOf("storageos", v.StorageOS, validateStorageOS),
		memberOf("projected", v.Projected, validateProjected),
		memberOf("scaleIO", v.ScaleIO, validateScaleIO),
		memberOf("csi", v.CSI, validateCSI),
		memberOf("ephemeral", v.Ephemeral, func(ephemeral *corev1.EphemeralVolumeSource, ephemeralPath *field.Path) field.ErrorList {
			errs := validateEphemeral(ephemeral, ephemeralPath)
			return append(errs, s.validateCreatedClaimName(volume.Name, path.Child("name"))...)
		}),
		memberOf("image", v.Image, validateImageVolume),
	}, "must specify a volume type", "may not specify more than 1 volume type")
	if v.ISCSI != nil && v.ISCSI.InitiatorName != nil && len(volume.Name+":"+v.ISCSI.TargetPortal) > 64 {
		errs = append(errs, field.Invalid(path.Child("name"), volume.Name,
			"Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified."))
	}
	return errs
}

// hasClaimNames reports whether the Pod has a name that those of the claims of ephemeral
// volumes can begin with. One that is too long would be in each of them.
func (s *podScope) hasClaimNames() bool {
	return s.meta.Name != "" && len(s.meta.Name) <= validation.DNS1123SubdomainMaxLength
}

// validateCreatedClaimName checks the name of the claim that is created for an ephemeral
// volume.
func (s *podScope) validateCreatedClaimName(volume string, path *field.Path) field.ErrorList {
	if !s.hasClaimNames() || volume == "" { // other errors
		return nil
	}
	var errs field.ErrorList
	claim := s.meta.Name + "-" + volume
	for _, msg := range validation.IsDNS1123Subdomain(claim) {
		errs = append(errs, field.Invalid(path, volume, fmt.Sprintf("PVC name %q: %v", claim, msg)))
	}
	return errs
}

func validateEmptyDir(dir *corev1.EmptyDirVolumeSource, path *field.Path) field.ErrorList {
	if dir.SizeLimit != nil && dir.SizeLimit.Sign() < 0 {
		return field.ErrorList{field.Forbidden(path.Child("sizeLimit"), "SizeLimit field must be a valid resource quantity")}
	}
	return nil
}

func validateHostPath(hostPath *corev1.HostPathVolumeSource, path *field.Path) field.ErrorList {
	if hostPath.Path == "" {
		return field.ErrorList{field.Required(path.Child("path"), "")}
	}
	errs := validateNoBacksteps(hostPath.Path, path.Child("path"))
	if hostPath.Type != nil {
		errs = append(errs, supported(path.Child("type"), *hostPath.Type,
			corev1.HostPathUnset, corev1.HostPathBlockDev, corev1.HostPathCharDev, corev1.HostPathDirectory,
			corev1.HostPathDirectoryOrCreate, corev1.HostPathFile, corev1.HostPathFileOrCreate, corev1.HostPathSocket)...)
	}
	return errs
}

func validateSecretVolume(secret *corev1.SecretVolumeSource, path *field.Path) field.ErrorList {
	errs := required(path.Child("secretName"), secret.SecretName)
	errs = append(errs, validateFileMode(secret.DefaultMode, path.Child("defaultMode"))...)
	return append(errs, validateKeyPaths(secret.Items, path.Child("items"))...)
}

func validateConfigMapVolume(configMap *corev1.ConfigMapVolumeSource, path *field.Path) field.ErrorList {
	errs := required(path.Child("name"), configMap.Name)
	errs = append(errs, validateFileMode(configMap.DefaultMode, path.Child("defaultMode"))...)
	return append(errs, validateKeyPaths(configMap.Items, path.Child("items"))...)
}

func validateKeyPaths(items []corev1.KeyToPath, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range items {
		errs = append(errs, validateKeyPath(&items[i], path.Index(i))...)
	}
	return errs
}

func validateKeyPath(item *corev1.KeyToPath, path *field.Path) field.ErrorList {
	errs := required(path.Child("key"), item.Key)
	errs = append(errs, required(path.Child("path"), item.Path)...)
	errs = append(errs, validateOwnPath(item.Path, path.Child("path"))...)
	return append(errs, validateFileMode(item.Mode, path.Child("mode"))...)
}

func validateFileMode(mode *int32, path *field.Path) field.ErrorList {
	if mode == nil || 0 <= *mode && *mode <= 0o777 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *mode, "must be a number between 0 and 0777 (octal), both inclusive")}
}

func validatePersistentVolumeClaim(claim *corev1.PersistentVolumeClaimVolumeSource, path *field.Path) field.ErrorList {
	return required(path.Child("claimName"), claim.ClaimName)
}

func validateNFS(nfs *corev1.NFSVolumeSource, path *field.Path) field.ErrorList {
	errs := required(path.Child("server"), nfs.Server)
	errs = append(errs, required(path.Child("path"), nfs.Path)...)
	if !isAbs(nfs.Path) {
		errs = append(errs, field.Invalid(path.Child("path"), nfs.Path, "must be an absolute path"))
	}
	return errs
}

const maxCSIDriverName = 63

func validateCSI(csi *corev1.CSIVolumeSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if driver, path := csi.Driver, path.Child("driver"); driver == "" {
		errs = append(errs, field.Required(path, ""))
	} else {
		if len(driver) > maxCSIDriverName {
			errs = append(errs, field.TooLong(path, driver, maxCSIDriverName))
		}
		errs = append(errs, invalid(path, driver, validation.IsDNS1123Subdomain(strings.ToLower(driver)))...)
	}
	if secret := csi.NodePublishSecretRef; secret != nil {
		if secret.Name == "" {
			errs = append(errs, field.Required(path.Child("nodePublishSecretRef", "name"), ""))
		} else {
			// kube-apiserver leaves out the reference here.
			errs = append(errs, dnsSubdomain(path.Child("name"), secret.Name)...)
		}
	}
	return errs
}

func validateImageVolume(image *corev1.ImageVolumeSource, path *field.Path) field.ErrorList {
	errs := required(path.Child("reference"), image.Reference)
	return append(errs, validatePullPolicy(image.PullPolicy, path.Child("pullPolicy"))...)
}

// validateOwnPath checks a path that a volume's files are put at: relative, in
// the volume, and not of the names that the kubelet keeps for itself.
func validateOwnPath(target string, path *field.Path) field.ErrorList {
	errs := validateDescendingPath(target, path)
	// A path that starts with "../" has been reported.
	if strings.HasPrefix(target, "..") && !strings.HasPrefix(target, "../") {
		errs = append(errs, field.Invalid(path, target, "must not start with '..'"))
	}
	return errs
}

// validateDescendingPath checks for a relative path that does not lead out.
func validateDescendingPath(target string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if isAbs(target) {
		errs = append(errs, field.Invalid(path, target, "must be a relative path"))
	}
	return append(errs, validateNoBacksteps(target, path)...)
}

func validateNoBacksteps(target string, path *field.Path) field.ErrorList {
	if slices.Contains(strings.Split(target, "/"), "..") {
		return field.ErrorList{field.Invalid(path, target, "must not contain '..'")}
	}
	return nil
}

func isAbs(target string) bool { return strings.HasPrefix(target, "/") }
