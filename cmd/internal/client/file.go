// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// File is a kubeconfig in a file.
type File struct {
	Flag string // that names the file, without dashes
	Path string

	content      []byte        // that Load has read
	resyncPeriod time.Duration // for tests
}

// Load returns the config in the file. It returns an error with the flag if there is none.
func (f *File) Load() (config *rest.Config, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("--%s=%s: %w", f.Flag, f.Path, err)
		}
	}()
	if f.content, err = os.ReadFile(f.Path); err != nil {
		return nil, err
	}
	// Not loaded deferred: if the file is empty or has no current context, that returns the
	// cluster that the process runs in.
	file, err := clientcmd.Load(f.content)
	if err != nil {
		return nil, err
	}
	for _, cluster := range file.Clusters {
		cluster.LocationOfOrigin = f.Path
	}
	for _, user := range file.AuthInfos {
		user.LocationOfOrigin = f.Path
	}
	if err := clientcmd.ResolveLocalPaths(file); err != nil {
		return nil, err
	}
	return clientcmd.NewNonInteractiveClientConfig(*file, "", &clientcmd.ConfigOverrides{}, nil).ClientConfig()
}
