// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
	"k8s.io/klog/v2"
)

// resyncPeriod is how often a kubeconfig is compared with what was read, without an event.
const resyncPeriod = 20 * time.Second

// AwaitChange waits for a change of the kubeconfig as File.AwaitChange does, or, without one,
// for the end of the context.
func (o *Options) AwaitChange(ctx context.Context) error {
	if o.Kubeconfig == "" {
		<-ctx.Done()
		return nil
	}
	return o.file.AwaitChange(ctx)
}

// AwaitChange returns an error when the content of the file is no longer that which Load has
// read, because the client does not read it again, and nil when the context ends. A process
// that ends with the error is started again by what runs it.
func (f *File) AwaitChange(ctx context.Context) error {
	var events <-chan fsnotify.Event
	var errs <-chan error // the watcher waits until each is received
	if watcher, err := fsnotify.NewWatcher(); err == nil {
		defer watcher.Close()
		events, errs = watcher.Events, watcher.Errors
		// The directory, because files are replaced. If it cannot be watched, the file is only
		// compared periodically.
		if err := watcher.Add(filepath.Dir(f.Path)); err != nil {
			klog.FromContext(ctx).V(1).Info("Cannot watch the directory of the kubeconfig", "file", f.Path, "err", err)
		}
	}
	// There is no event if the directory is replaced, or if the file is a link into another one.
	ticker := time.NewTicker(cmp.Or(f.resyncPeriod, resyncPeriod))
	defer ticker.Stop()
	for {
		// A file that is missing or empty is being written.
		if content, err := os.ReadFile(f.Path); err == nil && len(content) > 0 && !bytes.Equal(content, f.content) {
			return fmt.Errorf("--%s=%s has changed: the process has to be started again to use it", f.Flag, f.Path)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-events:
		case <-errs:
		case <-ticker.C:
		}
	}
}
