// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package unanswered retries requests that etcd does not answer.
package unanswered

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/raft/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

// Timeout is how long a request is retried. It is enough to elect another leader, and to
// close the connection to a member that hangs.
const Timeout = 20 * time.Second

// Retry calls request until etcd answers. With the response it returns the error of the
// last call that etcd did not answer, or nil if it answered the first.
func Retry[R any](ctx context.Context, key string, request func(retry bool) (R, error)) (response R, unanswered, err error) {
	began := time.Now()
	backoff := wait.Backoff{Duration: 20 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 6, Cap: time.Second}
	for {
		response, err = request(unanswered != nil)
		if !Is(err) || time.Since(began) > Timeout {
			return response, unanswered, err
		}
		if unanswered == nil {
			klog.FromContext(ctx).V(2).Info("Etcd did not answer a request, retrying", "key", key, "err", err)
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

// Is reports whether the error means that a member or the etcd cluster cannot answer at
// present, and not that the request is invalid.
func Is(err error) bool {
	var fromEtcd rpctypes.EtcdError
	if errors.As(err, &fromEtcd) {
		return fromEtcd.Code() == codes.Unavailable
	}
	answer := status.Convert(err)
	var own interface{ GRPCStatus() *status.Status }
	if errors.As(err, &own) { // Convert includes the text of errors that wrap it
		answer = own.GRPCStatus()
	}
	switch answer.Code() {
	case codes.Unavailable:
		return true
	case codes.Unknown:
		// A member that hands over its leadership, or stops, returns these errors of raft.
		return answer.Message() == raft.ErrProposalDropped.Error() || answer.Message() == raft.ErrStopped.Error()
	}
	return false
}
