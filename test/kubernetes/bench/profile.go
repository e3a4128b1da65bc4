// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
)

// profiles is a directory for CPU profiles of Borough's servers. If it is empty, there
// are none.
type profiles string

// collect profiles a server that ends after stop is called. The profiles have five
// seconds each: the server drops a profile whose request is canceled.
func (p profiles) collect(ctx context.Context, name string, config *rest.Config) (stop func() error, err error) {
	if p == "" {
		return func() error { return nil }, nil
	}
	server := &side{name: name, config: config}
	c, err := server.client(0)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		var err error
		for n := 0; err == nil; n++ {
			err = p.add(ctx, c, fmt.Sprintf("%s-%03d.pprof", name, n))
		}
		if ctx.Err() != nil {
			err = nil
		}
		done <- err
	}()
	return func() error {
		cancel()
		return <-done
	}, nil
}

func (p profiles) add(ctx context.Context, c *client, name string) error {
	response, err := c.send(ctx, http.MethodGet, "/debug/pprof/profile?seconds=5", "*/*", nil)
	if err != nil {
		return fmt.Errorf("profile the server: %w", err)
	}
	defer response.Body.Close()
	profile, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("read a profile: %w", err)
	}
	return os.WriteFile(filepath.Join(string(p), name), profile, 0o644)
}
