// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package warnings names what is valid in a Pod, but will not do what it seems to say.
// The texts and their order are those of kube-apiserver.
package warnings

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/borough-io/borough/pkg/corepod"
)

// warnings collects what to warn of, each with the path of its field, up to
// maxWarnings.
type warnings []string

const (
	// maxWarnings is more than an answer has room for: the library shows 4096
	// characters of them.
	maxWarnings = 100
	// maxCompared is how many things of one sort are compared with each other. A
	// Pod can have so many that comparing all would take seconds.
	maxCompared = 200
	// maxQuoted is the length up to which a name or path is quoted. One of them can be
	// in all warnings. Valid names are shorter.
	maxQuoted = 512
)

func (w *warnings) add(path *field.Path, format string, args ...any) {
	if len(*w) < maxWarnings {
		*w = append(*w, path.String()+": "+fmt.Sprintf(format, args...))
	}
}

// addPlain adds a warning that names no field.
func (w *warnings) addPlain(format string, args ...any) {
	if len(*w) < maxWarnings {
		*w = append(*w, fmt.Sprintf(format, args...))
	}
}

// addIP warns of an address that is not in canonical form.
func (w *warnings) addIP(path *field.Path, ip string) {
	for _, text := range utilvalidation.GetWarningsForIP(path, ip) {
		w.addPlain("%s", text)
	}
}

// quoted is a name or path that is quoted in a warning.
type quoted string

func (q quoted) String() string {
	if len(q) > maxQuoted {
		return strconv.Quote(string(q[:maxQuoted])) + "..."
	}
	return strconv.Quote(string(q))
}

// ForPod returns the warnings for a new Pod: fields that are deprecated, ambiguous
// or without effect.
func ForPod(pod *corev1.Pod) []string {
	var w warnings
	spec, path := &pod.Spec, field.NewPath("spec")
	if problems := utilvalidation.IsDNS1123Label(pod.Name); len(problems) != 0 {
		w.add(field.NewPath("metadata", "name"), "this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: %v", problems)
	}
	w.addScheduling(spec)
	w.addAnnotations(pod)
	w.addVolumes(spec.Volumes)
	w.addRepeated(path.Child("hostAliases"), "ip", len(spec.HostAliases), func(i int) string { return spec.HostAliases[i].IP })
	w.addRepeated(path.Child("imagePullSecrets"), "name", len(spec.ImagePullSecrets), func(i int) string { return spec.ImagePullSecrets[i].Name })
	for i, secret := range spec.ImagePullSecrets {
		if secret.Name == "" {
			w.add(path.Child("imagePullSecrets").Index(i).Child("name"), "invalid empty name %q", secret.Name)
		}
	}
	w.addFractions(path.Child("overhead"), spec.Overhead, corev1.ResourceMemory, corev1.ResourceEphemeralStorage)
	if sc := spec.SecurityContext; sc == nil || sc.SeccompProfile == nil {
		w.addSeccomp(pod, corev1.SeccompPodAnnotationKey)
	}
	for path, container := range corepod.Containers(spec, field.NewPath("spec")) {
		if sc := container.SecurityContext; sc == nil || sc.SeccompProfile == nil {
			w.addSeccomp(pod, corev1.SeccompContainerAnnotationKeyPrefix+container.Name)
		}
		for _, name := range []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
			w.addFractions(path.Child("resources", "limits"), container.Resources.Limits, name)
			w.addFractions(path.Child("resources", "requests"), container.Resources.Requests, name)
		}
		w.addHiddenVariables(path.Child("env"), container.Env)
	}
	w.addPorts(spec)
	w.addPortNames(spec)
	if period := spec.TerminationGracePeriodSeconds; period != nil && *period < 0 {
		w.add(path.Child("terminationGracePeriodSeconds"), "must be >= 0; negative values are invalid and will be treated as 1")
	}
	for term, path := range corepod.AffinityTerms(spec.Affinity) {
		if term.LabelSelector == nil {
			w.add(path.Child("labelSelector"), "a null labelSelector results in matching no pod")
		}
	}
	if spec.DNSConfig != nil {
		for i, ip := range spec.DNSConfig.Nameservers {
			w.addIP(path.Child("dnsConfig", "nameservers").Index(i), ip)
		}
	}
	for i, alias := range spec.HostAliases {
		w.addIP(path.Child("hostAliases").Index(i).Child("ip"), alias.IP)
	}
	return w
}

// ForStatus returns the warnings for an update of the status: addresses that are not
// in canonical form.
func ForStatus(status *corev1.PodStatus) []string {
	path := field.NewPath("status")
	var w warnings
	for i, ip := range status.PodIPs {
		w.addIP(path.Child("podIPs").Index(i).Child("ip"), ip.IP)
	}
	for i, ip := range status.HostIPs {
		w.addIP(path.Child("hostIPs").Index(i).Child("ip"), ip.IP)
	}
	return w
}

// oldNodeLabels are labels of nodes that are deprecated or no longer used.
var oldNodeLabels = map[string]string{
	"beta.kubernetes.io/arch":                       `deprecated since v1.14; use "kubernetes.io/arch" instead`,
	"beta.kubernetes.io/os":                         `deprecated since v1.14; use "kubernetes.io/os" instead`,
	"failure-domain.beta.kubernetes.io/region":      `deprecated since v1.17; use "topology.kubernetes.io/region" instead`,
	"failure-domain.beta.kubernetes.io/zone":        `deprecated since v1.17; use "topology.kubernetes.io/zone" instead`,
	"beta.kubernetes.io/instance-type":              `deprecated since v1.17; use "node.kubernetes.io/instance-type" instead`,
	"app.kubernetes.io/created-by":                  `deprecated since v1.9`,
	"scheduler.alpha.kubernetes.io/preferAvoidPods": `deprecated since v1.22; use Taints and Tolerations instead`,
	"node-role.kubernetes.io/master":                `use "node-role.kubernetes.io/control-plane" instead`,
}

func (w *warnings) addScheduling(spec *corev1.PodSpec) {
	path := field.NewPath("spec")
	for _, key := range slices.Sorted(maps.Keys(spec.NodeSelector)) {
		if message, old := oldNodeLabels[key]; old {
			w.add(path.Child("nodeSelector").Key(key), "%s", message)
		}
	}
	if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		affinity, path := spec.Affinity.NodeAffinity, path.Child("affinity", "nodeAffinity")
		if required := affinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
			for i := range required.NodeSelectorTerms {
				w.addNodeSelectorTerm(path.Child("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms").Index(i), &required.NodeSelectorTerms[i], false)
			}
		}
		preferred := affinity.PreferredDuringSchedulingIgnoredDuringExecution
		for i := range preferred {
			w.addNodeSelectorTerm(path.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i).Child("preference"), &preferred[i].Preference, true)
		}
	}
	for i, constraint := range spec.TopologySpreadConstraints {
		path := path.Child("topologySpreadConstraints").Index(i)
		if message, old := oldNodeLabels[constraint.TopologyKey]; old {
			w.add(path.Child("topologyKey"), "%s is %s", constraint.TopologyKey, message)
		}
		if constraint.LabelSelector == nil {
			w.add(path.Child("labelSelector"), "a null labelSelector results in matching no pod")
		}
	}
}

// addNodeSelectorTerm looks at values only where validation lets any through.
func (w *warnings) addNodeSelectorTerm(path *field.Path, term *corev1.NodeSelectorTerm, values bool) {
	for i, expression := range term.MatchExpressions {
		path := path.Child("matchExpressions").Index(i)
		if message, old := oldNodeLabels[expression.Key]; old {
			w.add(path.Child("key"), "%s is %s", expression.Key, message)
		}
		if !values {
			continue
		}
		for j, value := range expression.Values {
			for _, problem := range utilvalidation.IsValidLabelValue(value) {
				w.add(path.Child("values").Index(j), "%s is invalid, %s", value, problem)
			}
		}
	}
}

func (w *warnings) addAnnotations(pod *corev1.Pod) {
	has := func(key string) bool { _, found := pod.Annotations[key]; return found }
	path := field.NewPath("metadata", "annotations")
	const critical = "scheduler.alpha.kubernetes.io/critical-pod"
	if has(critical) {
		w.add(path.Key(critical), `non-functional in v1.16+; use the "priorityClassName" field instead`)
	}
	for _, key := range []string{"security.alpha.kubernetes.io/sysctls", "security.alpha.kubernetes.io/unsafe-sysctls"} {
		if has(key) {
			w.add(path.Key(key), `non-functional in v1.11+; use the "sysctls" field instead`)
		}
	}
}

func (w *warnings) addSeccomp(pod *corev1.Pod, annotation string) {
	if _, found := pod.Annotations[annotation]; found {
		w.add(field.NewPath("metadata", "annotations").Key(annotation), `non-functional in v1.27+; use the "seccompProfile" field instead`)
	}
}

// addRepeated warns of every value of a list that is in it before, too.
func (w *warnings) addRepeated(path *field.Path, name string, length int, value func(int) string) {
	seen := sets.New[string]()
	for i := range length {
		if v := value(i); seen.Has(v) {
			w.add(path.Index(i).Child(name), "duplicate %s %q", name, v)
		} else {
			seen.Insert(v)
		}
	}
}

// addFractions warns of quantities that count bytes and are not whole.
func (w *warnings) addFractions(path *field.Path, list corev1.ResourceList, names ...corev1.ResourceName) {
	for _, name := range names {
		quantity := list[name]
		if rounded := quantity.DeepCopy(); !rounded.RoundUp(0) {
			w.add(path.Key(string(name)), "fractional byte value %q is invalid, must be an integer", quantity.String())
		}
	}
}

// addHiddenVariables warns of variables that are defined again, unless the new
// value is built on the old one.
func (w *warnings) addHiddenVariables(path *field.Path, env []corev1.EnvVar) {
	seen := sets.New[string]()
	for i, variable := range env {
		if !seen.Has(variable.Name) {
			seen.Insert(variable.Name)
			continue
		}
		reference := "$(" + variable.Name + ")"
		if variable.ValueFrom != nil || variable.Value == reference || !strings.Contains(variable.Value, reference) {
			w.add(path.Index(i), "hides previous definition of %q, which may be dropped when using apply", variable.Name)
		}
	}
}

// addPorts warns of ports of any two containers with the same number. Each is
// compared with the first maxCompared of its number.
func (w *warnings) addPorts(spec *corev1.PodSpec) {
	type place struct {
		path *field.Path
		port *corev1.ContainerPort
	}
	type number struct {
		port     int32
		protocol corev1.Protocol
	}
	byNumber := map[number][]place{}
	for path, container := range corepod.Containers(spec, field.NewPath("spec")) {
		for i := range container.Ports {
			here := place{path.Child("ports").Index(i), &container.Ports[i]}
			port := here.port
			if port.HostIP != "" && port.HostPort == 0 {
				w.add(here.path, "hostIP set without hostPort: %+v", *port)
			}
			key := number{port.ContainerPort, port.Protocol}
			for _, other := range byNumber[key] {
				switch {
				case port.HostIP == other.port.HostIP && port.HostPort == other.port.HostPort:
					w.add(here.path, "duplicate port definition with %s", other.path)
				case port.HostPort == 0 || other.port.HostPort == 0:
					w.add(here.path, "overlapping port definition with %s", other.path)
				case port.HostPort == other.port.HostPort && (port.HostIP == "") != (other.port.HostIP == ""):
					w.add(here.path, "dangerously ambiguous port definition with %s", other.path)
				}
			}
			if len(byNumber[key]) < maxCompared {
				byNumber[key] = append(byNumber[key], here)
			}
		}
	}
}

// addPortNames warns of names that more than one port has.
func (w *warnings) addPortNames(spec *corev1.PodSpec) {
	byName := map[string]*field.Path{}
	for path, container := range corepod.Containers(spec, field.NewPath("spec")) {
		for i, port := range container.Ports {
			here := path.Child("ports").Index(i)
			if other, found := byName[port.Name]; found {
				w.add(here, "duplicate port name %q with %s, services and probes that select ports by name will use %s", port.Name, other, other)
			} else if port.Name != "" {
				byName[port.Name] = here
			}
		}
	}
}
