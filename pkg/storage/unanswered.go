// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"bytes"
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

// unansweredPatience is for how long a write is tried again that etcd did not
// answer. It is enough for another member to be elected leader, and for a
// connection to one that stands still to be given up.
const unansweredPatience = 20 * time.Second

// decided is a client whose writes end with an answer. etcd's own client makes
// no write again that a member has taken and not answered, as happens to those
// under way when the member ends or the leader changes: the write may have been
// carried out. A write of what exists names the revision that it changes, so at
// most one try of it can succeed, and if one did, that shows in what is there
// then. A create names none: when one try succeeds and somebody deletes the object
// before the next, the next creates it once more.
type decided struct {
	kubernetes.Interface
	// endEpoch keeps earlier tries of a create, of which the revision is 0 and
	// may return, from being carried out later.
	endEpoch func(context.Context) error
}

// OptimisticPut puts, and if need be again. That a try fails because the value
// is there already means that an earlier one succeeded.
func (d decided) OptimisticPut(ctx context.Context, key string, value []byte, expectedRevision int64, opts kubernetes.PutOptions) (kubernetes.PutResponse, error) {
	opts.GetOnFailure = true
	response, unanswered, err := retryUnanswered(ctx, key, func(again bool) (kubernetes.PutResponse, error) {
		if again && expectedRevision == 0 {
			if err := d.endEpoch(ctx); err != nil {
				return kubernetes.PutResponse{}, err
			}
		}
		return d.Interface.OptimisticPut(ctx, key, value, expectedRevision, opts)
	})
	if err != nil || unanswered == nil || response.Succeeded {
		return response, err
	}
	if kv := response.KV; kv != nil && bytes.Equal(kv.Value, value) {
		return kubernetes.PutResponse{Succeeded: true, Revision: kv.ModRevision}, nil
	}
	// Somebody has changed it since, or did so before us: who can tell?
	return kubernetes.PutResponse{}, unanswered
}

// OptimisticDelete deletes, and if need be again. That a try fails because
// nothing is there means that an earlier one succeeded, or somebody else's, which
// comes to the same. The revision may then be later than that of the deletion.
func (d decided) OptimisticDelete(ctx context.Context, key string, expectedRevision int64, opts kubernetes.DeleteOptions) (kubernetes.DeleteResponse, error) {
	opts.GetOnFailure = true
	response, unanswered, err := retryUnanswered(ctx, key, func(bool) (kubernetes.DeleteResponse, error) {
		return d.Interface.OptimisticDelete(ctx, key, expectedRevision, opts)
	})
	if err == nil && unanswered != nil && response.KV == nil {
		response.Succeeded = true
	}
	return response, err
}

// retryUnanswered calls write until it is answered. It returns with the answer
// the error of the last call that was not, nil if there was none.
func retryUnanswered[R any](ctx context.Context, key string, write func(again bool) (R, error)) (response R, unanswered, err error) {
	began := time.Now()
	backoff := wait.Backoff{Duration: 20 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 6, Cap: time.Second}
	for {
		response, err = write(unanswered != nil)
		if !isUnanswered(err) || time.Since(began) > unansweredPatience {
			return response, unanswered, err
		}
		if unanswered == nil {
			klog.FromContext(ctx).V(2).Info("Etcd did not answer a write, will try again", "key", key, "err", err)
		}
		unanswered = err
		timer := time.NewTimer(backoff.Step())
		select {
		case <-ctx.Done():
			timer.Stop()
			return response, unanswered, err
		case <-timer.C:
		}
	}
}

// isUnanswered says whether the error tells of a member or of a cluster that
// can't answer now, and not of the request.
func isUnanswered(err error) bool {
	var fromEtcd rpctypes.EtcdError
	if errors.As(err, &fromEtcd) {
		return fromEtcd.Code() == codes.Unavailable
	}
	return status.Code(err) == codes.Unavailable
}
