// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/test/poll"
)

// backoff is the delay of a client after a failure, for example while the
// server is down.
const backoff = 10 * time.Millisecond

// write sends random writes until the round is over.
func (s *storm) write(ctx context.Context, over <-chan struct{}, client rest.Interface, r *rand.Rand) error {
	for {
		select {
		case <-over:
			return nil
		default:
		}
		p, at := choose(r, namespaces)
		o, result, err := send(ctx, p.request(client, at))
		if ctx.Err() != nil {
			return nil // the test has ended
		}
		if o == updated && p.effect == deletes {
			o, err = s.acknowledgedDelete(p.resource, result)
		}
		s.count(p.name, o)
		switch {
		case err != nil && !s.toleratesError(err):
			return fmt.Errorf("%s %s in %s: %w", p.name, at.name, at.namespace, err)
		case err != nil:
			_ = poll.Sleep(ctx, backoff) // returns early when the test ends
		case o == created && p.effect == creates, o == updated:
			if err := s.acknowledged(p.resource, result); err != nil {
				return fmt.Errorf("%s %s in %s: %w", p.name, at.name, at.namespace, err)
			}
			signal(s.written[at.namespace])
		case o == noNamespace:
			signal(s.missed[at.namespace])
		}
	}
}

// toleratesError reports whether a request may fail with the error.
func (s *storm) toleratesError(err error) bool {
	if strings.Contains(err.Error(), "etcdserver: ") {
		return true // on a busy machine etcd may elect another leader at any time
	}
	if !s.faulty {
		return false
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true // no response
	}
	code := status.Status().Code
	return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests ||
		strings.Contains(err.Error(), "not yet ready to handle request")
}

// recreate deletes a Namespace once it has content, and creates it again when
// it is removed: at once, or after a write has failed without it.
func (s *storm) recreate(ctx context.Context, namespace string, r *rand.Rand) error {
	for range 4 + r.IntN(16) {
		if err := awaitSignal(ctx, s.written[namespace]); err != nil {
			return fmt.Errorf("wait for writes in Namespace %s: %w", namespace, err)
		}
	}
	if err := s.sendUntilDone(ctx, "DELETE Namespace", namespace, r, func(client rest.Interface) *rest.Request {
		return client.Delete().Resource("namespaces").Name(namespace)
	}, noNamespace); err != nil {
		return err
	}
	s.marked <- struct{}{}
	if err := s.awaitRemoval(ctx, namespace); err != nil {
		return err
	}
	if r.IntN(2) > 0 {
		if err := awaitSignal(ctx, s.missed[namespace]); err != nil {
			return fmt.Errorf("wait for a write that fails without Namespace %s: %w", namespace, err)
		}
	}
	return s.create(ctx, namespace, r)
}

func (s *storm) create(ctx context.Context, namespace string, r *rand.Rand) error {
	return s.sendUntilDone(ctx, "POST Namespace", namespace, r, func(client rest.Interface) *rest.Request {
		return withJSON(client.Post().Resource("namespaces"), manifest("Namespace", "name", target{name: namespace}, `"spec": {}`))
	}, exists)
}

// sendUntilDone sends a request for a Namespace to one of the servers, and
// retries it if it fails. The outcome done means that an earlier attempt was
// carried out.
func (s *storm) sendUntilDone(ctx context.Context, name, namespace string, r *rand.Rand, request func(rest.Interface) *rest.Request, done outcome) error {
	for retried := false; ; retried = true {
		o, result, err := send(ctx, request(s.clients[r.IntN(2)][0]))
		s.count(name, o)
		switch {
		case o == created || o == updated:
			if err := s.acknowledged(namespaceResource, result); err != nil {
				return fmt.Errorf("%s %s: %w", name, namespace, err)
			}
			return nil
		case o == done && retried:
			return nil
		case o != failed || !s.toleratesError(err):
			return fmt.Errorf("%s %s: %s: %w", name, namespace, o, result.Error())
		}
		if cause := poll.Sleep(ctx, backoff); cause != nil {
			return fmt.Errorf("%s %s: %w: %w", name, namespace, cause, err)
		}
	}
}

// awaitRemoval returns once etcd has removed a Namespace.
func (s *storm) awaitRemoval(ctx context.Context, namespace string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	key := namespacesPrefix + namespace
	last := "unknown"
	for {
		got, err := s.Client.Get(ctx, key)
		switch {
		case err != nil:
		case len(got.Kvs) == 0:
			return nil
		default:
			last = describe(got.Kvs[0].Value)
			for response := range s.Client.Watch(ctx, key, clientv3.WithRev(got.Header.Revision+1)) {
				for _, event := range response.Events {
					if event.Type == clientv3.EventTypeDelete {
						return nil
					}
					last = describe(event.Kv.Value)
				}
			}
		}
		if err := poll.Sleep(ctx, backoff); err != nil {
			return fmt.Errorf("wait for the removal of Namespace %s: %w: it is %s", namespace, err, last)
		}
	}
}

// acknowledged records the write in a successful response.
func (s *storm) acknowledged(resource schema.GroupResource, result rest.Result) error {
	body, err := result.Raw()
	if err != nil {
		return err
	}
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(body, &object); err != nil {
		return fmt.Errorf("decode the answer: %w", err)
	}
	key := keyOf(resource, object)
	var revision int64
	if _, err := fmt.Sscan(object.ResourceVersion, &revision); err != nil {
		return fmt.Errorf("read the resourceVersion of %s: %w", key, err)
	}
	s.acknowledge(write{key, revision})
	return nil
}

// acknowledgedDelete records what was deleted according to a successful response, unless
// this is only a Status. Its resourceVersion may be later than that of the delete.
func (s *storm) acknowledgedDelete(resource schema.GroupResource, result rest.Result) (outcome, error) {
	body, err := result.Raw()
	if err != nil {
		return failed, err
	}
	var answer struct {
		metav1.PartialObjectMetadata
		Items []metav1.PartialObjectMetadata // of a collection
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return failed, fmt.Errorf("decode the answer: %w", err)
	}
	objects := answer.Items
	switch {
	case answer.Kind == "Status":
		return deleted, nil
	case objects == nil:
		objects = append(objects, answer.PartialObjectMetadata)
	case len(objects) == 0:
		return noObject, nil
	}
	for _, object := range objects {
		s.acknowledgeDelete(incarnation{keyOf(resource, object), object.UID})
	}
	return deleted, nil
}

// keyOf returns the key of an object in etcd.
func keyOf(resource schema.GroupResource, object metav1.PartialObjectMetadata) string {
	key := prefix + cmp.Or(resource.Group, "core") + "/" + resource.Resource + "/"
	if object.Namespace != "" {
		key += object.Namespace + "/"
	}
	return key + object.Name
}

// signal sends a signal unless one is pending.
func signal(of chan<- struct{}) {
	select {
	case of <- struct{}{}:
	default:
	}
}

// awaitSignal waits for a signal.
func awaitSignal(ctx context.Context, of <-chan struct{}) error {
	select {
	case <-of:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
