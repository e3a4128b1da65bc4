// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusternamespaces decides what happens to Borough's Namespace when the cluster's
// namespace of the same name is deleted.
package clusternamespaces

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
)

// Config configures it. The cluster's namespace controller discovers Borough's resources,
// and deletes the objects in every namespace of that name, also here.
type Config struct {
	// Controllers are the user names of the cluster's namespace controller. If it
	// runs as another user, it is recognized by its user agent, and its
	// deletecollection requests are rejected for Namespaces that are not being
	// deleted. If empty, requests of the controller are not treated specially.
	Controllers []string
	// Couple deletes Borough's Namespace with the cluster's, which waits until the content
	// is gone. Otherwise the two are independent: the cluster's controller finds no objects
	// here. It deletes none in either case: Borough's own controller purges its Namespaces.
	Couple bool
}

// DefaultControllers returns the user names of the cluster's namespace controller, with
// --use-service-account-credentials and without.
func DefaultControllers() []string {
	return []string{"system:serviceaccount:kube-system:namespace-controller", "system:kube-controller-manager"}
}

// selectNothing is a label selector that no object matches.
const selectNothing = "tenancy.borough.io/none,!tenancy.borough.io/none"

// WithFilter returns a handler that filters the two requests with which a namespace
// controller purges: a deletecollection of a resource in a namespace, and a list of what
// is left. Other requests of the same user, such as those of the garbage collector, name
// an object or span all namespaces.
func (c Config) WithFilter(next http.Handler, client versioned.Interface, serializer runtime.NegotiatedSerializer) http.Handler {
	if len(c.Controllers) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		nothing, err := c.findsNothing(req, client)
		if err != nil {
			responsewriters.ErrorNegotiated(err, serializer, v1.SchemeGroupVersion, w, req)
			return
		}
		if nothing {
			req = req.Clone(req.Context())
			query := req.URL.Query()
			query.Set("labelSelector", selectNothing)
			// Read from the cache, so that the cluster does not depend on our etcd.
			query.Set("resourceVersion", "0")
			req.URL.RawQuery = query.Encode()
		}
		next.ServeHTTP(w, req)
	})
}

// findsNothing reports whether the request is one with which the cluster purges a
// namespace, and must find nothing. It returns Forbidden if the purge must be
// rejected.
func (c Config) findsNothing(req *http.Request, client versioned.Interface) (bool, error) {
	ctx := req.Context()
	info, ok := request.RequestInfoFrom(ctx)
	if !ok || info.APIGroup != tenancy.GroupName || info.Namespace == "" || info.Name != "" ||
		info.Verb != "list" && info.Verb != "deletecollection" {
		return false, nil
	}
	user, ok := request.UserFrom(ctx)
	switch {
	case !ok:
		return false, nil
	case !slices.Contains(c.Controllers, user.GetName()):
		if info.Verb == "deletecollection" && isNamespaceController(req.UserAgent()) {
			return true, checkUnlisted(ctx, client, info, user.GetName())
		}
		return false, nil
	case !c.Couple:
		return true, nil
	}
	ns, err := lookUp(ctx, client, info.Namespace)
	if err != nil {
		return false, err
	}
	if info.Verb == "list" {
		// A purge begins with a deletecollection. A list by itself deletes nothing.
		return ns == nil || ns.DeletionTimestamp.IsZero(), nil
	}
	// Our controller deletes the content. A deletecollection could be processed when
	// there is another Namespace of that name.
	return true, terminate(ctx, client, ns)
}

// isNamespaceController reports whether a user agent is that of the namespace
// controller of Kubernetes. Regardless of the user and of the program, client-go
// ends the user agent with the name of the controller or of its service account.
func isNamespaceController(agent string) bool {
	return agent[strings.LastIndexAny(agent, "/:")+1:] == "namespace-controller"
}

// checkUnlisted returns Forbidden if our Namespace is not being deleted. The caller
// is the cluster's namespace controller as a user that is not in Controllers. The
// namespace of the cluster shows the message in its conditions.
func checkUnlisted(ctx context.Context, client versioned.Interface, info *request.RequestInfo, user string) error {
	ns, err := lookUp(ctx, client, info.Namespace)
	if err != nil || ns == nil || !ns.DeletionTimestamp.IsZero() {
		return err
	}
	klog.FromContext(ctx).Info("Rejected a purge by the namespace controller of the cluster, whose user is not in --cluster-namespace-controllers",
		"user", user, "namespace", info.Namespace, "resource", info.Resource)
	return apierrors.NewForbidden(tenancy.Resource(info.Resource), "", fmt.Errorf(
		"the namespace controller of the cluster, as user %q, may not purge the %s Namespace %q, which is not being deleted: --cluster-namespace-controllers of borough-apiserver does not name this user. "+
			"Run kube-controller-manager with --use-service-account-credentials, or as a separate user that the flag names",
		user, tenancy.GroupName, info.Namespace))
}

// refusedController matches the error for a user that is not in
// --cluster-namespace-controllers.
var refusedController = regexp.MustCompile(`the namespace controller of the cluster, as user ("(?:[^"\\]|\\.)*"), may not purge`)

// RefusedController returns the user, quoted, whose purge the server has refused
// according to the message of a condition, which contains the error.
func RefusedController(message string) (user string, refused bool) {
	match := refusedController.FindStringSubmatch(message)
	if match == nil {
		return "", false
	}
	return match[1], true
}

// lookUp returns our Namespace that the cluster purges, or nil if there is none. It reads
// from storage, because a cache may have an earlier Namespace of that name.
func lookUp(ctx context.Context, client versioned.Interface, name string) (*v1.Namespace, error) {
	ns, err := client.TenancyV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look up the Namespace that the namespace controller of the cluster purges: %w", err)
	}
	return ns, nil
}

// terminate deletes our Namespace, unless there is none or it is being deleted.
func terminate(ctx context.Context, client versioned.Interface, ns *v1.Namespace) error {
	if ns == nil || !ns.DeletionTimestamp.IsZero() {
		return nil
	}
	// Conflict: it was replaced by another Namespace, or is protected.
	err := client.TenancyV1().Namespaces().Delete(ctx, ns.Name, *metav1.NewPreconditionDeleteOptions(string(ns.UID)))
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete the Namespace with that of the cluster: %w", err)
	}
	return nil
}
