// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"net"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The volumes that Kubernetes once had drivers for in its own tree. Their
// drivers are elsewhere or gone, but the API still has them.

func validateGitRepo(repo *corev1.GitRepoVolumeSource, path *field.Path) field.ErrorList {
	errs := required(path.Child("repository"), repo.Repository)
	return append(errs, validateDescendingPath(repo.Directory, path.Child("directory"))...)
}

func validateGCEPersistentDisk(disk *corev1.GCEPersistentDiskVolumeSource, path *field.Path) field.ErrorList {
	errs := required(path.Child("pdName"), disk.PDName)
	return append(errs, validatePartition(disk.Partition, path.Child("partition"))...)
}

func validateAWSElasticBlockStore(store *corev1.AWSElasticBlockStoreVolumeSource, path *field.Path) field.ErrorList {
	errs := required(path.Child("volumeID"), store.VolumeID)
	return append(errs, validatePartition(store.Partition, path.Child("partition"))...)
}

func validatePartition(partition int32, path *field.Path) field.ErrorList {
	if 0 <= partition && partition <= 255 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, partition, validation.InclusiveRangeError(1, 255))}
}

func validateISCSI(iscsi *corev1.ISCSIVolumeSource, path *field.Path) field.ErrorList {
	errs := required(path.Child("targetPortal"), iscsi.TargetPortal)
	if iscsi.IQN == "" {
		errs = append(errs, field.Required(path.Child("iqn"), ""))
	} else {
		errs = append(errs, validateISCSIName(iscsi.IQN, path.Child("iqn"))...)
	}
	errs = append(errs, validateLUN(iscsi.Lun, path.Child("lun"))...)
	if (iscsi.DiscoveryCHAPAuth || iscsi.SessionCHAPAuth) && iscsi.SecretRef == nil {
		errs = append(errs, field.Required(path.Child("secretRef"), ""))
	}
	if iscsi.InitiatorName != nil {
		errs = append(errs, validateISCSIName(*iscsi.InitiatorName, path.Child("initiatorname"))...)
	}
	return errs
}

var iscsiNames = map[string]*regexp.Regexp{
	"iqn": regexp.MustCompile(`iqn\.\d{4}-\d{2}\.([[:alnum:]-.]+)(:[^,;*&$|\s]+)$`),
	"eui": regexp.MustCompile(`^eui.[[:alnum:]]{16}$`),
	"naa": regexp.MustCompile(`^naa.[[:alnum:]]{32}$`),
}

// validateISCSIName checks for one of the three forms of RFC 3721 and RFC 3980.
func validateISCSIName(name string, path *field.Path) field.ErrorList {
	form, known := iscsiNames[name[:min(3, len(name))]]
	switch {
	case !known:
		return field.ErrorList{field.Invalid(path, name, "must be valid format starting with iqn, eui, or naa")}
	case !form.MatchString(name):
		return field.ErrorList{field.Invalid(path, name, "must be valid format")}
	}
	return nil
}

func validateFC(fc *corev1.FCVolumeSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch wwns, wwids := len(fc.TargetWWNs) > 0, len(fc.WWIDs) > 0; {
	case !wwns && !wwids:
		errs = append(errs, field.Required(path.Child("targetWWNs"), "must specify either targetWWNs or wwids, but not both"))
	case wwns && wwids:
		errs = append(errs, field.Invalid(path.Child("targetWWNs"), fc.TargetWWNs, "targetWWNs and wwids can not be specified simultaneously"))
	}
	if len(fc.TargetWWNs) > 0 {
		if fc.Lun == nil {
			errs = append(errs, field.Required(path.Child("lun"), "lun is required if targetWWNs is specified"))
		} else {
			errs = append(errs, validateLUN(*fc.Lun, path.Child("lun"))...)
		}
	}
	return errs
}

func validateLUN(lun int32, path *field.Path) field.ErrorList {
	if 0 <= lun && lun <= 255 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, lun, validation.InclusiveRangeError(0, 255))}
}

func validateGlusterfs(glusterfs *corev1.GlusterfsVolumeSource, path *field.Path) field.ErrorList {
	errs := required(path.Child("endpoints"), glusterfs.EndpointsName)
	return append(errs, required(path.Child("path"), glusterfs.Path)...)
}

func validateFlocker(flocker *corev1.FlockerVolumeSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch name, uuid := flocker.DatasetName != "", flocker.DatasetUUID != ""; {
	case !name && !uuid:
		errs = append(errs, field.Required(path, "one of datasetName and datasetUUID is required"))
	case name && uuid:
		errs = append(errs, field.Invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously"))
	}
	if strings.Contains(flocker.DatasetName, "/") {
		errs = append(errs, field.Invalid(path.Child("datasetName"), flocker.DatasetName, "must not contain '/'"))
	}
	return errs
}

func validateRBD(rbd *corev1.RBDVolumeSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(rbd.CephMonitors) == 0 {
		errs = append(errs, field.Required(path.Child("monitors"), ""))
	}
	return append(errs, required(path.Child("image"), rbd.RBDImage)...)
}

func validateCinder(cinder *corev1.CinderVolumeSource, path *field.Path) field.ErrorList {
	errs := required(path.Child("volumeID"), cinder.VolumeID)
	return append(errs, validateSecretRef(cinder.SecretRef, path.Child("secretRef"))...)
}

func validateSecretRef(ref *corev1.LocalObjectReference, path *field.Path) field.ErrorList {
	if ref == nil {
		return nil
	}
	return required(path.Child("name"), ref.Name)
}

func validateCephFS(cephFS *corev1.CephFSVolumeSource, path *field.Path) field.ErrorList {
	if len(cephFS.Monitors) == 0 {
		return field.ErrorList{field.Required(path.Child("monitors"), "")}
	}
	return nil
}

func validateQuobyte(quobyte *corev1.QuobyteVolumeSource, path *field.Path) field.ErrorList {
	const registryForm = "must be a host:port pair or multiple pairs separated by commas"
	var errs field.ErrorList
	switch {
	case quobyte.Registry == "":
		errs = append(errs, field.Required(path.Child("registry"), registryForm))
	case len(quobyte.Tenant) > 64:
		errs = append(errs, field.Required(path.Child("tenant"), "must be a UUID and may not exceed a length of 64 characters"))
	default:
		for pair := range strings.SplitSeq(quobyte.Registry, ",") {
			if _, _, err := net.SplitHostPort(pair); err != nil {
				errs = append(errs, field.Invalid(path.Child("registry"), quobyte.Registry, registryForm))
			}
		}
	}
	return append(errs, required(path.Child("volume"), quobyte.Volume)...)
}

func validateFlexVolume(flex *corev1.FlexVolumeSource, path *field.Path) field.ErrorList {
	errs := required(path.Child("driver"), flex.Driver)
	for _, option := range sortedKeys(flex.Options) {
		domain, _, _ := strings.Cut(option, "/")
		domain = "." + strings.ToLower(domain)
		if strings.HasSuffix(domain, ".kubernetes.io") || strings.HasSuffix(domain, ".k8s.io") {
			errs = append(errs, field.Invalid(path.Child("options").Key(option), option, "kubernetes.io and k8s.io namespaces are reserved"))
		}
	}
	return errs
}

func validateAzureFile(azure *corev1.AzureFileVolumeSource, path *field.Path) field.ErrorList {
	errs := required(path.Child("secretName"), azure.SecretName)
	return append(errs, required(path.Child("shareName"), azure.ShareName)...)
}

func validateAzureDisk(azure *corev1.AzureDiskVolumeSource, path *field.Path) field.ErrorList {
	errs := required(path.Child("diskName"), azure.DiskName)
	errs = append(errs, required(path.Child("diskURI"), azure.DataDiskURI)...)
	if azure.CachingMode != nil {
		errs = append(errs, supported(path.Child("cachingMode"), *azure.CachingMode,
			corev1.AzureDataDiskCachingNone, corev1.AzureDataDiskCachingReadOnly, corev1.AzureDataDiskCachingReadWrite)...)
	}
	if azure.Kind == nil {
		return errs
	}
	errs = append(errs, supported(path.Child("kind"), *azure.Kind,
		corev1.AzureDedicatedBlobDisk, corev1.AzureManagedDisk, corev1.AzureSharedBlobDisk)...)
	prefix, form := "https://", "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
	if *azure.Kind == corev1.AzureManagedDisk {
		prefix, form = "/subscriptions/", "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
	}
	if !strings.HasPrefix(azure.DataDiskURI, prefix) {
		errs = append(errs, field.NotSupported(path.Child("diskURI"), azure.DataDiskURI, []string{form}))
	}
	return errs
}

func validateVsphereVolume(vsphere *corev1.VsphereVirtualDiskVolumeSource, path *field.Path) field.ErrorList {
	return required(path.Child("volumePath"), vsphere.VolumePath)
}

func validatePhotonPersistentDisk(photon *corev1.PhotonPersistentDiskVolumeSource, path *field.Path) field.ErrorList {
	return required(path.Child("pdID"), photon.PdID)
}

func validatePortworxVolume(portworx *corev1.PortworxVolumeSource, path *field.Path) field.ErrorList {
	return required(path.Child("volumeID"), portworx.VolumeID)
}

func validateScaleIO(scaleIO *corev1.ScaleIOVolumeSource, path *field.Path) field.ErrorList {
	errs := required(path.Child("gateway"), scaleIO.Gateway)
	errs = append(errs, required(path.Child("system"), scaleIO.System)...)
	return append(errs, required(path.Child("volumeName"), scaleIO.VolumeName)...)
}

func validateStorageOS(storageOS *corev1.StorageOSVolumeSource, path *field.Path) field.ErrorList {
	errs := requiredAnd(path.Child("volumeName"), storageOS.VolumeName, dnsLabel)
	if storageOS.VolumeNamespace != "" {
		errs = append(errs, dnsLabel(path.Child("volumeNamespace"), storageOS.VolumeNamespace)...)
	}
	return append(errs, validateSecretRef(storageOS.SecretRef, path.Child("secretRef"))...)
}
