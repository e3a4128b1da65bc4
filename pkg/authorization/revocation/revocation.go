// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package revocation ends watches when the right to them is gone. A request is
// authorized when it begins, and a watch continues until the client ends it.
package revocation

import (
	"context"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// interval is the shortest time between two decisions about the same watch, except for
// one about each event, so that many changes of the policy do not cost many decisions
// each.
const interval = 100 * time.Millisecond

// Policy is what decides about watches.
type Policy interface {
	authorizer.UnconditionalAuthorizer
	// Changed returns a channel that is closed when decisions in one of the namespaces, or
	// about the cluster, may have changed.
	Changed(namespaces ...string) <-chan struct{}
}

type watchKey struct{}

// watched is by what a watch was authorized.
type watched struct {
	// request has the attributes of the request, nil if its user always has all rights.
	request authorizer.Attributes
	// impersonation has those of what its client impersonates.
	impersonation []authorizer.Attributes
}

// WithAttributes keeps the attributes by which a watch was authorized for Watch. It
// has to be the first handler behind authorization, before the request is changed.
func WithAttributes(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, ok := request.RequestInfoFrom(req.Context())
		if ok && info.IsResourceRequest && info.Verb == "watch" {
			kept := watched{impersonation: impersonated(req.Context())}
			attributes, err := filters.GetAuthorizerAttributes(req.Context())
			if err == nil && attributes.GetUser() != nil && !IsPrivileged(attributes.GetUser()) {
				kept.request = attributes
			}
			req = req.WithContext(context.WithValue(req.Context(), watchKey{}, kept))
		}
		next.ServeHTTP(w, req)
	})
}

// IsPrivileged reports whether a user has all rights, which cannot be revoked.
func IsPrivileged(u user.Info) bool {
	return slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup)
}

// Attributes returns the attributes of the request that WithAttributes has kept, and
// whether there are any.
func Attributes(ctx context.Context) (authorizer.Attributes, bool) {
	kept, _ := ctx.Value(watchKey{}).(watched)
	return kept.request, kept.request != nil
}

// Watch returns the watch that a client gets: the same, until the policy no longer
// allows it, or to impersonate its user. Then it has an event of type ERROR with a
// Forbidden status, and ends. A watch whose context has no attributes is returned as it
// is.
func Watch(ctx context.Context, w watch.Interface, policy Policy) watch.Interface {
	kept, _ := ctx.Value(watchKey{}).(watched)
	attributes := kept.impersonation
	if kept.request != nil {
		attributes = append(slices.Clip(attributes), kept.request)
	}
	return newRevocable(ctx, w, policy, attributes)
}

// WatchImpersonated does the same for a watch to which every user has the right: it ends
// when the policy no longer allows to impersonate its user.
func WatchImpersonated(ctx context.Context, w watch.Interface, policy Policy) watch.Interface {
	kept, _ := ctx.Value(watchKey{}).(watched)
	return newRevocable(ctx, w, policy, kept.impersonation)
}

func newRevocable(ctx context.Context, w watch.Interface, policy Policy, attributes []authorizer.Attributes) watch.Interface {
	if len(attributes) == 0 {
		return w
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &revocable{
		inner:      w,
		policy:     policy,
		attributes: attributes,
		events:     make(chan watch.Event),
		cancel:     cancel,
	}
	for _, a := range attributes {
		r.namespaces = append(r.namespaces, a.GetNamespace())
	}
	go r.run(ctx)
	return r
}

// revocable is a watch that ends when the right to it is gone.
type revocable struct {
	inner      watch.Interface
	policy     Policy
	attributes []authorizer.Attributes // all have to be allowed
	namespaces []string                // of the attributes
	events     chan watch.Event
	cancel     context.CancelFunc
}

// ResultChan implements watch.Interface.
func (r *revocable) ResultChan() <-chan watch.Event { return r.events }

// Stop implements watch.Interface.
func (r *revocable) Stop() { r.cancel() }

// run sends events until one of both sides ends the watch. If the policy has changed, an
// event is sent only after a decision. It is made at once, after those about other watches in
// the namespace, but only once for the event: events wait no longer, no matter how often the
// policy changes.
//
// So nothing is sent that was written after this server has answered a revocation. What was
// written between the two may be sent: the policy and the objects are not read in one order.
func (r *revocable) run(ctx context.Context) {
	defer close(r.events)
	defer r.cancel()
	defer r.inner.Stop()
	namespace := r.namespaces[len(r.namespaces)-1] // that of the request
	turn := decisions.enter(namespace)
	defer decisions.leave(namespace)
	// The policy may have changed between the authorization of the request and now.
	var changed <-chan struct{} = closed
	var next time.Time // when the policy may be asked again
	var event watch.Event
	var out chan<- watch.Event // nil while there is no event to send
	undecided := false         // whether there was no decision since the event was received
	for {
		in := r.inner.ResultChan()
		if out != nil {
			in = nil
		}
		wake, due := changed, (<-chan time.Time)(nil)
		switch {
		case !isClosed(changed):
		case undecided || !time.Now().Before(next):
			select {
			case turn.taken <- struct{}{}:
			case <-ctx.Done():
				return
			}
			changed = r.policy.Changed(r.namespaces...)
			status := r.revoked(ctx)
			<-turn.taken
			if status != nil {
				select {
				case r.events <- watch.Event{Type: watch.Error, Object: status}:
				case <-ctx.Done():
				}
				return
			}
			wake, undecided, next = changed, false, time.Now().Add(interval)
		default:
			wake, due = nil, time.After(time.Until(next))
		}
		var ok bool
		select {
		case <-wake:
		case <-due:
		case event, ok = <-in:
			if !ok {
				return
			}
			out, undecided = r.events, true
		case out <- event:
			out, undecided = nil, false
		case <-ctx.Done():
			return
		}
	}
}

// revoked returns the status of a request that the policy does not allow, or nil. A
// policy that cannot decide revokes nothing.
func (r *revocable) revoked(ctx context.Context) *metav1.Status {
	for _, attributes := range r.attributes {
		decision, reason, err := r.policy.Authorize(ctx, attributes)
		if decision != authorizer.DecisionAllow && err == nil {
			status := responsewriters.ForbiddenStatusError(attributes, reason).Status()
			return &status
		}
	}
	return nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()
