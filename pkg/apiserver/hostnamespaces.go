// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
)

// HostNamespaces says what the end of a Namespace of the host cluster means for
// ours of the same name. The host's namespace controller discovers our kinds,
// and when the host's Namespace goes it deletes what it finds under that name,
// here too.
type HostNamespaces struct {
	// Controllers are the users that the host's namespace controller comes as.
	// The rule applies to nobody else.
	Controllers []string
	// Couple has our Namespace deleted with the host's. Otherwise ours has
	// nothing to do with it: the host's controller finds nothing in it and
	// deletes nothing. What is in one that is being deleted, our own controller
	// purges.
	Couple bool
}

// DefaultHostNamespaceControllers are the users that the host's namespace
// controller comes as, with service accounts for the controllers and without.
func DefaultHostNamespaceControllers() []string {
	return []string{"system:serviceaccount:kube-system:namespace-controller", "system:kube-controller-manager"}
}

// selectNothing is a label selector that no object matches.
const selectNothing = "tenancy.borough.io/none,!tenancy.borough.io/none"

// guard applies the rule to the two calls by which a namespace controller
// purges: it deletes the objects of a kind in a Namespace, and lists what is
// left. Others, such as those of the garbage collector, which may come as the
// same user, name an object or span all Namespaces.
func (h HostNamespaces) guard(next http.Handler, client versioned.Interface, serializer runtime.NegotiatedSerializer) http.Handler {
	if len(h.Controllers) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if namespace, ok := h.purges(req.Context()); ok {
			ours := false
			if h.Couple {
				var err error
				if ours, err = terminate(req.Context(), client, namespace); err != nil {
					responsewriters.ErrorNegotiated(err, serializer, v1.SchemeGroupVersion, w, req)
					return
				}
			}
			if !ours {
				req = req.Clone(req.Context())
				query := req.URL.Query()
				query.Set("labelSelector", selectNothing)
				// From the cache, so that the host does not wait for our etcd to
				// hear of nothing.
				query.Set("resourceVersion", "0")
				req.URL.RawQuery = query.Encode()
			}
		}
		next.ServeHTTP(w, req)
	})
}

// purges tells whether the request is one by which the host purges a Namespace,
// and which.
func (h HostNamespaces) purges(ctx context.Context) (namespace string, ok bool) {
	info, ok := request.RequestInfoFrom(ctx)
	if !ok || info.APIGroup != tenancy.GroupName || info.Namespace == "" || info.Name != "" ||
		info.Verb != "list" && info.Verb != "deletecollection" {
		return "", false
	}
	user, ok := request.UserFrom(ctx)
	return info.Namespace, ok && slices.Contains(h.Controllers, user.GetName())
}

// terminate has our Namespace deleted and tells whether it is being deleted. It
// asks storage: what a cache says may be of an earlier Namespace of that name.
func terminate(ctx context.Context, client versioned.Interface, name string) (bool, error) {
	ns, err := client.TenancyV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look up the namespace that the host's controller purges: %w", err)
	}
	if !ns.DeletionTimestamp.IsZero() {
		return true, nil
	}
	// Conflict: it is another one by now, or is protected and stays.
	err = client.TenancyV1().Namespaces().Delete(ctx, name, *metav1.NewPreconditionDeleteOptions(string(ns.UID)))
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return false, fmt.Errorf("delete the namespace with the host's: %w", err)
	}
	return err == nil, nil
}
