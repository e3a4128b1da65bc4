// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"

	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/feature"

	"github.com/borough-io/borough/pkg/await"
	"github.com/borough-io/borough/pkg/storage/fence"
	"github.com/borough-io/borough/pkg/storage/internal/unanswered"
)

// ambiguousWriteRetrier is a client that determines the outcome of writes that etcd
// did not answer, and ensures that each is carried out at most once. etcd's own
// client does not retry a write that a member has received, because it may have been
// carried out (package balancer prevents an exception). This happens to writes in flight
// when the member stops or the leader changes.
//
// An update or a delete compares the revision that it changes, so at most one try
// can succeed, and a read of the key shows whether one did, unless another client has
// changed it since: then ResolveUpdate determines it. A create compares no revision, so it
// is retried only after ResolveCreate has determined that no earlier try was, or will be,
// carried out.
//
// etcd also answers that it has no space for writes that it has carried out: those that it
// had accepted before the database was full. Only reads show which.
type ambiguousWriteRetrier struct {
	kubernetes.Interface
	outcomes outcomeResolver
}

// outcomeResolver determines the outcome of writes.
type outcomeResolver interface {
	// Revision returns a revision that etcd had reached before the call.
	Revision() int64
	// ResolveCreate has the contract of the method of fence.Fence.
	ResolveCreate(ctx context.Context, key string, value []byte, since int64) (written, until int64, err error)
	// ResolveUpdate has the contract of fence.ResolveUpdate.
	ResolveUpdate(ctx context.Context, key string, value []byte, since, until int64) (written int64, err error)
	// ResolveFull has the contract of fence.ResolveFull.
	ResolveFull(ctx context.Context, key string, value []byte, expectedRevision, since int64) (written int64, err error)
}

// fenceResolver implements outcomeResolver for one store.
type fenceResolver struct {
	fence   *fence.Fence
	client  *clientv3.Client
	reached *await.Revision
}

// Revision implements outcomeResolver.
func (c fenceResolver) Revision() int64 { return c.reached.Get() }

// ResolveCreate implements outcomeResolver.
func (c fenceResolver) ResolveCreate(ctx context.Context, key string, value []byte, since int64) (written, until int64, err error) {
	if err := checkProgressRequests(); err != nil {
		return 0, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, unanswered.Timeout)
	defer cancel()
	return c.fence.ResolveCreate(ctx, c.client, key, value, since)
}

// ResolveUpdate implements outcomeResolver.
func (c fenceResolver) ResolveUpdate(ctx context.Context, key string, value []byte, since, until int64) (written int64, err error) {
	if err := checkProgressRequests(); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, unanswered.Timeout)
	defer cancel()
	return fence.ResolveUpdate(ctx, c.client, key, value, since, until)
}

// ResolveFull implements outcomeResolver.
func (c fenceResolver) ResolveFull(ctx context.Context, key string, value []byte, expectedRevision, since int64) (written int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, unanswered.Timeout)
	defer cancel()
	return fence.ResolveFull(ctx, c.client, key, value, expectedRevision, since)
}

// checkProgressRequests returns an error if the history of a key cannot be read.
func checkProgressRequests() error {
	if !feature.DefaultFeatureSupportChecker.Supports(storage.RequestWatchProgress) {
		return errors.New("this version of etcd does not support progress requests for watches")
	}
	return nil
}

// OptimisticPut puts a value, with retries.
func (r ambiguousWriteRetrier) OptimisticPut(ctx context.Context, key string, value []byte, expectedRevision int64, opts kubernetes.PutOptions) (kubernetes.PutResponse, error) {
	opts.GetOnFailure = true
	if expectedRevision == 0 {
		return r.create(ctx, key, value, opts)
	}
	since := max(expectedRevision, r.outcomes.Revision())
	response, lost, err := unanswered.Retry(ctx, key, func(bool) (kubernetes.PutResponse, error) {
		return r.Interface.OptimisticPut(ctx, key, value, expectedRevision, opts)
	})
	if lost == nil && isFull(err) {
		return r.putIfFull(ctx, key, value, expectedRevision, since, err)
	}
	if err != nil || lost == nil || response.Succeeded {
		return response, refused(lost, err)
	}
	// If etcd has this value, an earlier try succeeded.
	if kv := response.KV; kv != nil && bytes.Equal(kv.Value, value) {
		return kubernetes.PutResponse{Succeeded: true, Revision: kv.ModRevision}, nil
	}
	// Another client has changed the value, before this write or after it.
	written, _, err := unanswered.Retry(ctx, key, func(bool) (int64, error) {
		return r.outcomes.ResolveUpdate(ctx, key, value, since, response.Revision)
	})
	switch {
	case err != nil:
		return kubernetes.PutResponse{}, undetermined("etcd did not answer an update", err)
	case written != 0:
		return kubernetes.PutResponse{Succeeded: true, Revision: written}, nil
	}
	return response, nil
}

func (r ambiguousWriteRetrier) create(ctx context.Context, key string, value []byte, opts kubernetes.PutOptions) (kubernetes.PutResponse, error) {
	since := r.outcomes.Revision()
	response, _, err := unanswered.Retry(ctx, key, func(retry bool) (kubernetes.PutResponse, error) {
		if retry {
			written, until, err := r.outcomes.ResolveCreate(ctx, key, value, since)
			if err != nil {
				return kubernetes.PutResponse{}, undetermined("etcd did not answer a create", err)
			}
			if written != 0 {
				return kubernetes.PutResponse{Succeeded: true, Revision: written}, nil
			}
			since = until
		}
		return r.Interface.OptimisticPut(ctx, key, value, 0, opts)
	})
	// Earlier tries were not carried out, and since is after them.
	if isFull(err) {
		return r.putIfFull(ctx, key, value, 0, since, err)
	}
	return response, err
}

// isFull reports whether etcd has answered that it has no space.
func isFull(err error) bool { return errors.Is(err, rpctypes.ErrNoSpace) }

// putIfFull returns the outcome of a put that etcd answered with the error that it is full.
func (r ambiguousWriteRetrier) putIfFull(ctx context.Context, key string, value []byte, expectedRevision, since int64, full error) (kubernetes.PutResponse, error) {
	written, err := r.resolveFull(ctx, key, value, expectedRevision, since, full)
	return kubernetes.PutResponse{Succeeded: written != 0, Revision: written}, err
}

// resolveFull returns the revision of a write that etcd answered with the error that it is
// full, or that error if the write was not carried out.
func (r ambiguousWriteRetrier) resolveFull(ctx context.Context, key string, value []byte, expectedRevision, since int64, full error) (written int64, err error) {
	written, _, err = unanswered.Retry(ctx, key, func(bool) (int64, error) {
		return r.outcomes.ResolveFull(ctx, key, value, expectedRevision, since)
	})
	switch {
	case err != nil:
		return 0, undetermined("etcd has no space for a write", err)
	case written == 0:
		return 0, full
	}
	return written, nil
}

// OptimisticDelete deletes a key, with retries. If a retry finds no key, or one that was
// created later, an earlier try or another client has deleted it, which are treated
// alike. The returned revision may then be later than that of the deletion.
func (r ambiguousWriteRetrier) OptimisticDelete(ctx context.Context, key string, expectedRevision int64, opts kubernetes.DeleteOptions) (kubernetes.DeleteResponse, error) {
	opts.GetOnFailure = true
	since := max(expectedRevision, r.outcomes.Revision())
	response, lost, err := unanswered.Retry(ctx, key, func(bool) (kubernetes.DeleteResponse, error) {
		return r.Interface.OptimisticDelete(ctx, key, expectedRevision, opts)
	})
	if lost == nil && isFull(err) { // it also writes quotas
		deleted, err := r.resolveFull(ctx, key, nil, expectedRevision, since, err)
		return kubernetes.DeleteResponse{Succeeded: deleted != 0, Revision: deleted}, err
	}
	if err == nil && lost != nil && (response.KV == nil || response.KV.CreateRevision > expectedRevision) {
		response.Succeeded = true
	}
	return response, refused(lost, err)
}

// isRefusal reports whether etcd has answered with an error.
func isRefusal(err error) bool {
	var fromEtcd rpctypes.EtcdError
	return errors.As(err, &fromEtcd) && !unanswered.Is(err)
}

// refused returns the error of a write of which earlier tries were not answered. The
// refusal of a retry is not the outcome of the write, so it does not wrap the error.
func refused(lost, err error) error {
	if lost == nil || !isRefusal(err) {
		return err
	}
	return fmt.Errorf("etcd did not answer a write, which may have been carried out, and refused to repeat it: %v", err)
}

// undetermined returns the error of a write whose outcome could not be determined. As
// refused, it does not wrap a refusal.
func undetermined(what string, err error) error {
	const text = "%s, which may have been carried out, and its outcome cannot be determined: "
	if isRefusal(err) {
		return fmt.Errorf(text+"%v", what, err)
	}
	return fmt.Errorf(text+"%w", what, err)
}
