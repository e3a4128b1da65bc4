// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/borough-io/borough/pkg/clusternamespaces"
)

const (
	// namespaceController is the service account of the cluster's namespace
	// controller. kube-controller-manager creates it if it runs with
	// --use-service-account-credentials.
	namespaceController = "namespace-controller"
	flagControllers     = "cluster-namespace-controllers"

	fixControllers = "run kube-controller-manager with --use-service-account-credentials, and borough-apiserver without --" + flagControllers +
		"; or run kube-controller-manager as a separate user, and name that user in --" + flagControllers
)

// checkNamespaceController looks for signs of the user that the cluster's namespace
// controller authenticates as. The API does not show this user.
func (x *examination) checkNamespaceController(ctx context.Context) Finding {
	namespaces, err := x.client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return skipped("cannot list namespaces of the cluster: %s", oneLine(err.Error()))
	}
	for _, ns := range namespaces.Items {
		for _, c := range ns.Status.Conditions {
			user, refused := clusternamespaces.RefusedController(c.Message)
			if c.Type == corev1.NamespaceDeletionContentFailure && c.Status == corev1.ConditionTrue && refused {
				return fault(fmt.Sprintf("the namespace %s of the cluster stays Terminating: the cluster's namespace controller authenticates as the user %s, which --%s does not name", ns.Name, user, flagControllers),
					fixControllers)
			}
		}
	}

	listed := x.deployment.flag(flagControllers)
	if listed == nil {
		listed = clusternamespaces.DefaultControllers()
	}
	_, err = x.client.CoreV1().ServiceAccounts(metav1.NamespaceSystem).Get(ctx, namespaceController, metav1.GetOptions{})
	user := serviceaccount.MakeUsername(metav1.NamespaceSystem, namespaceController)
	switch {
	case apierrors.IsNotFound(err):
		return skipped("kube-controller-manager does not use service accounts, and the API does not show which user it authenticates as instead: it must be %s", strings.Join(listed, " or "))
	case err != nil:
		return skipped("cannot read the service account %s/%s: %s", metav1.NamespaceSystem, namespaceController, oneLine(err.Error()))
	case !slices.Contains(listed, user):
		return fault(fmt.Sprintf("--%s does not name %s, the service account of the cluster's namespace controller", flagControllers, user),
			fmt.Sprintf("add it to --%s, or remove the flag", flagControllers))
	}
	return ok("the cluster has %s, which the server expects", user)
}
