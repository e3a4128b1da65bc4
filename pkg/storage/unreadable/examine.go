// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"context"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/client/v3/kubernetes"

	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/klog/v2"
)

const (
	// ExamineInterval is the interval at which objects that cannot be read are read
	// again. When a reloaded configuration contains the key again, or a key service
	// has recovered, there is no event in etcd.
	ExamineInterval = 5 * time.Second
	// MaxExamined is the maximum number of objects that are read at each interval.
	// After a missing key is restored, any object that needs it shows this.
	MaxExamined = 100
	// maxSuspects is the size of the queue of objects to examine. Those that do not
	// fit are found by the next list.
	maxSuspects = 100
)

// suspect is an object that a reader could not read.
type suspect struct {
	key string
	// leftOut is the revision at which a watch has left the object out, or 0 if none has.
	leftOut int64
}

// suspect queues an object for examine.
func (s *Store) suspect(object suspect) {
	select {
	case s.suspects <- object:
	default:
	}
}

// examine reads the suspects, and periodically the objects that could not be read,
// until ctx ends.
func (s *Store) examine(ctx context.Context) {
	ticker := time.NewTicker(ExamineInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case object := <-s.suspects:
			s.examineAll(ctx, s.queued(object))
		case <-ticker.C:
			recorded := map[string]int64{}
			for _, object := range s.config.Objects.Some(s.config.Resource, MaxExamined) {
				recorded[object.Key] = 0
			}
			s.examineAll(ctx, recorded)
		}
	}
}

// examineAll examines the objects with the keys, with the revision at which a watch has left
// each out, and ends watches if any can be read.
func (s *Store) examineAll(ctx context.Context, leftOut map[string]int64) {
	var recovered []string
	for key, revision := range leftOut {
		if s.examineKey(ctx, key, revision) {
			recovered = append(recovered, key)
		}
	}
	if len(recovered) > 0 {
		s.expireWatches(ctx, recovered...)
	}
}

// queued returns the suspect and all that are in the queue, with the latest revision for each
// key: several watches can have left out the same object.
func (s *Store) queued(first suspect) map[string]int64 {
	all := map[string]int64{first.key: first.leftOut}
	for {
		select {
		case object := <-s.suspects:
			all[object.key] = max(all[object.key], object.leftOut)
		default:
			return all
		}
	}
}

// examineKey reads the object with the key, and records the result. It reports
// whether an object that lists or watches have left out, at its recorded revision or at
// leftOut, can be read now, although it was not written in between, or that watches have left
// out its deletion. Its record stays, see expireWatches.
func (s *Store) examineKey(ctx context.Context, key string, leftOut int64) (recovered bool) {
	response, err := s.config.Client.Get(ctx, key, kubernetes.GetOptions{})
	if err == nil && response.KV != nil {
		if err = s.read(ctx, response.KV); err != nil && !IsOutage(err) {
			s.note(ctx, key, response.KV.ModRevision, err)
			return false
		}
	}
	if err != nil { // those with a record are examined again at the next interval
		if leftOut > 0 {
			s.note(ctx, key, leftOut, err)
		}
		return false
	}
	if response.KV == nil {
		s.forget(ctx, key)
		return leftOut > 0 && s.isLeftOutDeletion(ctx, key, leftOut)
	}
	namespace, name := s.split(key)
	recorded, ok := s.config.Objects.get(s.config.Resource, namespace, name)
	if ok && recorded.revision == response.KV.ModRevision {
		return !s.isAwaited(key)
	}
	// The watch also calls readable for the previous state.
	if leftOut == response.KV.ModRevision && !s.isUnreadableAt(ctx, key, leftOut-1) {
		return true
	}
	// Only reads of this object by its name may have failed.
	s.forget(ctx, key)
	return false
}

// isLeftOutDeletion reports whether the object with the key was deleted at a revision, and watches
// may not have sent that.
func (s *Store) isLeftOutDeletion(ctx context.Context, key string, revision int64) bool {
	response, err := s.config.Client.Get(ctx, key, kubernetes.GetOptions{Revision: revision})
	return err == nil && response.KV == nil && !s.isUnreadableAt(ctx, key, revision-1)
}

// isUnreadableAt reports whether the object with the key cannot be read at a revision.
func (s *Store) isUnreadableAt(ctx context.Context, key string, revision int64) bool {
	response, err := s.config.Client.Get(ctx, key, kubernetes.GetOptions{Revision: revision})
	if err != nil || response.KV == nil {
		return false
	}
	err = s.read(ctx, response.KV)
	return err != nil && !IsOutage(err)
}

// read returns an error if a value cannot be read.
func (s *Store) read(ctx context.Context, kv *mvccpb.KeyValue) error {
	data, _, err := s.config.Transformer.TransformFromStorage(ctx, kv.Value, value.DefaultContext(kv.Key))
	if err != nil {
		return err
	}
	_, err = s.decode(data, kv.Key)
	return err
}

// expireWatches ends the watches with the error 410, and those that begin later at an
// earlier revision, of a list that may have left objects out. The clients, mainly watch
// caches, then list again, which includes the objects that can be read now. An event
// would not do: its resourceVersion would be an old one.
//
// The records of the objects, which have the keys, are removed when the watch cache has
// listed them. Until then, what it has is incomplete.
func (s *Store) expireWatches(ctx context.Context, keys ...string) {
	logger := klog.FromContext(ctx)
	logger.Info("Objects that could not be read from storage can be read again, ending watches so that clients list again", "resource", s.config.Resource)
	// Without a write, lists before and after could have the same revision. No watch reaches
	// that of the write: what it continues has a list without the objects.
	s.holdWatches()
	revision, err := s.config.NextRevision(ctx)
	if err != nil {
		logger.Error(err, "Watches that begin now may not have objects that can be read again", "resource", s.config.Resource)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expiring = false
	s.recovered = max(s.recovered, revision)
	for _, key := range keys {
		if s.config.Cached {
			s.awaited[key] = revision
		} else {
			s.forget(ctx, key)
		}
	}
	for w := range s.watches {
		w.expire(recoveredReason)
	}
}

// holdWatches lets watches pass nothing on until they expire.
func (s *Store) holdWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expiring = true
	for w := range s.watches {
		w.hold()
	}
}

// isAwaited reports whether the watch cache has yet to list the object with the key.
func (s *Store) isAwaited(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, awaited := s.awaited[key]
	return awaited
}

// listed removes the records of the objects that the watch cache has listed, which now
// watches from a revision. s.mu is held.
func (s *Store) listed(ctx context.Context, revision int64) {
	for key, since := range s.awaited {
		if revision >= since {
			delete(s.awaited, key)
			s.forget(ctx, key)
		}
	}
}
