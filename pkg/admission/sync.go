// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"time"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/tools/cache"
)

// syncTimeout is how long a request waits for a cache to sync after the server has
// started. It is the same as in the library's admission.Handler, which polls.
const syncTimeout = 10 * time.Second

// WaitForSync returns as soon as the cache has synced. After 10 seconds, or when ctx
// ends, it returns the same 403 as Kubernetes.
func WaitForSync(ctx context.Context, a admission.Attributes, synced cache.DoneChecker) error {
	if cache.IsDone(synced) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	if !cache.WaitFor(ctx, "", synced) {
		return admission.NewForbidden(a, errors.New("not yet ready to handle request"))
	}
	return nil
}
