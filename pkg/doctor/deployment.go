// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// deployment is the Deployment of the server or of the controller. A nil deployment
// has no flags.
type deployment struct {
	name      string
	replicas  int
	selector  *metav1.LabelSelector
	pod       corev1.PodSpec
	container corev1.Container
}

func newDeployment(d *appsv1.Deployment) *deployment {
	spec := d.Spec.Template.Spec
	container := spec.Containers[0]
	for _, c := range spec.Containers {
		if c.Name == "borough-apiserver" || c.Name == "borough-controller-manager" {
			container = c
		}
	}
	return &deployment{d.Name, int(ptr.Deref(d.Spec.Replicas, 1)), d.Spec.Selector, spec, container}
}

// flag returns the values of a flag, and the elements of values that are lists.
func (d *deployment) flag(name string) []string {
	if d == nil {
		return nil
	}
	var values []string
	args := slices.Concat(d.container.Command, d.container.Args)
	for i, arg := range args {
		value, found := strings.CutPrefix(arg, "--"+name+"=")
		if !found && arg == "--"+name && i+1 < len(args) {
			value, found = args[i+1], true
		}
		if found {
			values = append(values, strings.Split(value, ",")...)
		}
	}
	return values
}

// lastFlag returns the value of a flag that is not a list, or "" if it is not set.
func (d *deployment) lastFlag(name string) string {
	if values := d.flag(name); len(values) > 0 {
		return values[len(values)-1]
	}
	return ""
}

// boolFlag returns the value of a boolean flag, or the default if it is not set.
func (d *deployment) boolFlag(name string, value bool) bool {
	if d == nil {
		return value
	}
	for _, arg := range slices.Concat(d.container.Command, d.container.Args) {
		if text, found := strings.CutPrefix(arg, "--"+name+"="); found {
			value, _ = strconv.ParseBool(text) // the process does not start if it is neither
		} else if arg == "--"+name {
			value = true
		}
	}
	return value
}

// certSecret returns the Secret that has the serving certificate, and its key in the
// Secret. It reports whether the server manages the Secret itself, and whether the
// Deployment names a Secret with the certificate at all.
func (d *deployment) certSecret(namespace string) (secret types.NamespacedName, key string, managed, found bool) {
	if value := d.lastFlag("serving-cert-secret"); value != "" {
		namespace, name, found := strings.Cut(value, "/")
		return types.NamespacedName{Namespace: namespace, Name: name}, corev1.TLSCertKey, true, found
	}
	secret, key, found = d.mountedSecret(namespace, d.lastFlag("tls-cert-file"))
	return secret, key, false, found
}

// mountedSecret returns the Secret that has a file of the container, and its key in the
// Secret.
func (d *deployment) mountedSecret(namespace, file string) (secret types.NamespacedName, key string, found bool) {
	if d == nil || file == "" {
		return types.NamespacedName{}, "", false
	}
	for _, mount := range d.container.VolumeMounts {
		key, inside := strings.CutPrefix(file, path.Clean(mount.MountPath)+"/")
		if !inside {
			continue
		}
		for _, volume := range d.pod.Volumes {
			if volume.Name == mount.Name && volume.Secret != nil {
				return types.NamespacedName{Namespace: namespace, Name: volume.Secret.SecretName}, key, true
			}
		}
	}
	return types.NamespacedName{}, "", false
}

func (x *examination) checkDeployment(ctx context.Context) Finding {
	list, err := x.client.AppsV1().Deployments(x.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return skipped("cannot list Deployments in %s: %s", x.Namespace, oneLine(err.Error()))
	}
	for i := range list.Items {
		spec := list.Items[i].Spec.Template.Spec
		switch {
		case len(spec.Containers) == 0:
		case spec.ServiceAccountName == x.ServiceAccount:
			x.deployment = newDeployment(&list.Items[i])
		case spec.ServiceAccountName == x.ControllerServiceAccount:
			x.controller = newDeployment(&list.Items[i])
		}
	}
	if x.deployment != nil {
		return ok("%s/%s runs as the service account %s", x.Namespace, x.deployment.name, x.ServiceAccount)
	}
	return fault(fmt.Sprintf("no Deployment in the namespace %s runs as the service account %s", x.Namespace, x.ServiceAccount),
		"deploy Borough, or pass its --namespace and --service-account")
}

func (x *examination) checkServiceAccount(ctx context.Context) Finding {
	_, err := x.client.CoreV1().ServiceAccounts(x.Namespace).Get(ctx, x.ServiceAccount, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fault(fmt.Sprintf("the service account %s/%s does not exist", x.Namespace, x.ServiceAccount),
			fmt.Sprintf("kubectl create serviceaccount %s --namespace=%s, or pass the --namespace and --service-account that the server runs as", x.ServiceAccount, x.Namespace))
	case err != nil:
		return skipped("cannot read the service account: %s", oneLine(err.Error()))
	}
	return ok("%s/%s exists", x.Namespace, x.ServiceAccount)
}
