// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import "strings"

// These values have shown a difference in some field, or are at a limit.

var words = []string{
	"", "a", "A", "-a", "a-", "a.b", "a/b", "a/b/c", "a_b", "..", ".", "../x", "/x", "x/../y", "/", ":", "a:b", "a b", " pad", "pad ", "üñî",
	"1.2.3.4", "01.2.3.4", "1.2.3", "::1", "2001:db8::1", "::ffff:1.2.3.4", "fe80::1%eth0", "127.0.0.1", "0", "-1", "80", "9999999999",
	"kubernetes.io/x", "example.com/x", "example.com/a.b", "EXAMPLE.com/x", "k8s.io/", "hugepages-2Mi", "cpu", "memory", "requests.cpu",
	"c", "p", "v", "https://x", "iqn.2015-02.example.com:test", "metadata.labels['x']", "metadata.name", "v1", "spec.host", "limits.cpu",
	"requests.hugepages-2Mi", "net.ipv4.x", "net/ipv4/x", "kernel.shm_rmid_forced", "$(VAR)", "SIGTERM",
	strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a.", 126) + "a", strings.Repeat("a", 254), strings.Repeat("/a", 2050),
}

var numbers = []any{-2147483648, -1, 0, 1, 2, 3, 10, 30, 80, 255, 256, 420, 511, 512, 600, 3600, 65535, 65536, 2147483647, 2147483648, 9007199254740993, 1.5}

var portsOrNames = []any{0, 1, 80, -1, 65535, 65536, "http", "HTTP", "80", "a--b", "-a", "", "this-is-too-long"}

var times = []any{"2020-01-02T03:04:05Z", "2020-01-02T03:04:05.678Z", "2020-01-02T03:04:05+02:00", "2020-01-02", "", nil}

var quantities = []any{
	"0", "1", "2", "-1", "10", "100", "1000", "1m", "10m", "100m", "500m", "999m", "1000m", "1500m", "0.5", ".5", "0.1", "0.001", "0.0001", "1u", "1n", "0.1n", "1.0000001",
	"1k", "1Ki", "1M", "1Mi", "1.5Mi", "2Mi", "3Mi", "4Mi", "1G", "1Gi", "1T", "1Ti", "1P", "1Pi", "1E", "1Ei", "7Ei", "8Ei", "9E", "10E", "1e3", "1E3", "1e-3", "12e6", "1e18", "1e30",
	"9223372036854775807", "9223372036854775808", "9223372036854775", "9223372036854776", "9223372036854775807m", "-9223372036854775808", "-0", "+1", "00", "0.000", "0m", "0Gi", "100000000000000000000",
	1, 0, 2.5, -1, 1e20, "", "x", "1x", "1 Gi", "1gi", "Mi", "1.2.3",
}

var resourceNames = []string{
	"cpu", "memory", "ephemeral-storage", "storage", "hugepages-2Mi", "hugepages-1Gi", "hugepages-", "hugepages-x", "example.com/gpu", "example.com/x-y", "kubernetes.io/x",
	"requests.cpu", "limits.memory", "requests.example.com/x", "limits.example.com/x", "requests.hugepages-2Mi", "requests.storage", "count/pods", "count/jobs.batch", "resourcequotas", "services.nodeports",
	"attachable-volumes-x", "pods", "gpu", "", "CPU", "Example.com/x", "example.com/", "a/b/c",
}

// enumerations are the values of enumerated types, and an invalid one.
var enumerations = map[string][]string{
	"PullPolicy":                              {"Always", "Never", "IfNotPresent", "always"},
	"RestartPolicy":                           {"Always", "Never", "OnFailure", "Sometimes"},
	"ContainerRestartPolicy":                  {"Always", "Never", "OnFailure", "Sometimes"},
	"ContainerRestartRuleAction":              {"Restart", "RestartAllContainers", "Stop"},
	"ContainerRestartRuleOnExitCodesOperator": {"In", "NotIn", "Exists"},
	"DNSPolicy":                               {"ClusterFirst", "ClusterFirstWithHostNet", "Default", "None", "Any"},
	"Protocol":                                {"TCP", "UDP", "SCTP", "tcp", "ICMP"},
	"URIScheme":                               {"HTTP", "HTTPS", "http"},
	"TaintEffect":                             {"NoSchedule", "PreferNoSchedule", "NoExecute", "Evict"},
	"TolerationOperator":                      {"Exists", "Equal", "Lt", "Gt", "In"},
	"NodeSelectorOperator":                    {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Equal"},
	"LabelSelectorOperator":                   {"In", "NotIn", "Exists", "DoesNotExist", "Gt"},
	"UnsatisfiableConstraintAction":           {"DoNotSchedule", "ScheduleAnyway", "Never"},
	"NodeInclusionPolicy":                     {"Honor", "Ignore", "Maybe"},
	"MountPropagationMode":                    {"None", "HostToContainer", "Bidirectional", "Both"},
	"RecursiveReadOnlyMode":                   {"Disabled", "IfPossible", "Enabled", "On"},
	"TerminationMessagePolicy":                {"File", "FallbackToLogsOnError", "Log"},
	"HostPathType":                            {"", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice", "Pipe"},
	"StorageMedium":                           {"", "Memory", "HugePages", "HugePages-2Mi", "HugePages-1Gi", "HugePages-x", "Disk"},
	"PreemptionPolicy":                        {"Never", "PreemptLowerPriority", "Always"},
	"OSName":                                  {"linux", "windows", "plan9"},
	"SeccompProfileType":                      {"Unconfined", "RuntimeDefault", "Localhost", "None"},
	"AppArmorProfileType":                     {"Unconfined", "RuntimeDefault", "Localhost", "None"},
	"ProcMountType":                           {"Default", "Unmasked", "Masked"},
	"Capability":                              {"NET_ADMIN", "CAP_NET_ADMIN", "SYS_ADMIN", "CAP_SYS_ADMIN", "ALL", "x"},
	"PodFSGroupChangePolicy":                  {"OnRootMismatch", "Always", "Never"},
	"SupplementalGroupsPolicy":                {"Merge", "Strict", "None"},
	"PodSELinuxChangePolicy":                  {"MountOption", "Recursive", "None"},
	"ResourceName":                            resourceNames,
	"ResourceResizeRestartPolicy":             {"NotRequired", "RestartContainer", "Always"},
	"LimitType":                               {"Container", "Pod", "PersistentVolumeClaim", "example.com/x", "Node", "kubernetes.io/x"},
	"ResourceQuotaScope":                      {"Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity", "VolumeAttributesClass", "Other"},
	"ScopeSelectorOperator":                   {"In", "NotIn", "Exists", "DoesNotExist", "Equals"},
	"PodPhase":                                {"Pending", "Running", "Succeeded", "Failed", "Unknown", "Done"},
	"PodConditionType":                        {"Ready", "Initialized", "PodScheduled", "ContainersReady", "example.com/x", "x y"},
	"ConditionStatus":                         {"True", "False", "Unknown", "Maybe"},
	"PodQOSClass":                             {"Guaranteed", "Burstable", "BestEffort", "None"},
	"NamespacePhase":                          {"Active", "Terminating", "Gone"},
	"FinalizerName":                           {"kubernetes", "orphan", "foregroundDeletion", "example.com/f", "x", "a b"},
	"PersistentVolumeAccessMode":              {"ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod", "Write"},
	"PersistentVolumeMode":                    {"Filesystem", "Block", "Tape"},
	"AzureDataDiskCachingMode":                {"None", "ReadOnly", "ReadWrite", "All"},
	"AzureDataDiskKind":                       {"Shared", "Dedicated", "Managed", "Own"},
	"Signal":                                  {"SIGTERM", "SIGKILL", "SIGUSR1", "SIGNO"},
}
