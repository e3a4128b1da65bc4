// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
	"k8s.io/klog/v2"
)

// AwaitChange returns an error when the content of the kubeconfig is no longer that which
// Config has read, because the client does not read it again, and nil when the context ends.
// A process that ends with the error is started again by what runs it.
func (o *Options) AwaitChange(ctx context.Context) error {
	if o.Kubeconfig == "" {
		<-ctx.Done()
		return nil
	}
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		defer watcher.Close()
		// The directory, because files are replaced.
		err = watcher.Add(filepath.Dir(o.Kubeconfig))
	}
	if err != nil { // a limit of inotify, for example
		klog.FromContext(ctx).Error(err, "Cannot watch the kubeconfig: start the process again when it has changed", "file", o.Kubeconfig)
		<-ctx.Done()
		return nil
	}
	for {
		// A file that is missing or empty is being written.
		if content, err := os.ReadFile(o.Kubeconfig); err == nil && len(content) > 0 && !bytes.Equal(content, o.content) {
			return fmt.Errorf("--kubeconfig=%s has changed: the process has to be started again to use it", o.Kubeconfig)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-watcher.Events:
		case <-watcher.Errors: // events are lost
		}
	}
}
