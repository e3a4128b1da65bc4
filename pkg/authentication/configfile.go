// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package authentication

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sync/atomic"
	"time"

	apiserverapi "k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/server/egressselector"
	"k8s.io/apiserver/pkg/server/options/authenticationconfig/metrics"
	"k8s.io/apiserver/pkg/util/filesystem"
	"k8s.io/klog/v2"
)

const (
	// pollInterval is how often the file is read if no event says that it has changed,
	// and how often an issuer that did not answer is tried again.
	pollInterval = time.Minute
	// issuerTimeout is how long issuers that a change adds may take to answer. The
	// library tries them once more within that time.
	issuerTimeout = 15 * time.Second
)

// ConfigFile is an authentication configuration in a file, which is read again when it
// changes. It authenticates the tokens of its issuers.
type ConfigFile struct {
	path     string
	egress   egressselector.Lookup // nil if there is none
	serverID string
	config   *apiserverapi.AuthenticationConfiguration // that of the start
	current  atomic.Pointer[issuers]                   // nil before Start

	// Used by one goroutine.

	// done is the content that is in force, or that is not valid.
	done string
	// failed is the change whose failure was logged last.
	failed string
}

var _ authenticator.Token = &ConfigFile{}

// ReadConfigFile reads the configuration. Its issuers are used after Start. The server
// ID is that of the metrics.
func ReadConfigFile(path string, egress egressselector.Lookup, serverID string) (*ConfigFile, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the authentication configuration: %w", err)
	}
	config, err := parseConfig(content, egress)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &ConfigFile{path: path, egress: egress, serverID: serverID, config: config, done: string(content)}, nil
}

// Anonymous returns the section for anonymous requests, or nil. It never changes.
func (f *ConfigFile) Anonymous() *apiserverapi.AnonymousAuthConfig { return f.config.Anonymous }

// AuthenticateToken authenticates by the configuration that is in force.
func (f *ConfigFile) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	current := f.current.Load()
	if current == nil {
		return nil, false, errors.New("the authentication configuration is not in force yet")
	}
	return current.AuthenticateToken(ctx, token)
}

// Start puts the configuration in force and returns. Until the context ends, it follows
// changes of the file. It does not wait for the issuers: their tokens are refused until
// they have answered.
func (f *ConfigFile) Start(ctx context.Context) error {
	initial, err := newIssuers(ctx, f.config, nil, f.egress, f.serverID)
	if err != nil {
		return err
	}
	f.current.Store(initial)
	metrics.RegisterMetrics()
	metrics.RecordAuthenticationConfigLastConfigInfo(f.serverID, f.done)
	// The directory, because a watch of the file ends when the file is replaced, and
	// there are editors that create the new one later.
	go filesystem.WatchUntil(ctx, pollInterval, filepath.Dir(f.path), func() { f.reload(ctx) }, func(err error) {
		klog.FromContext(ctx).Error(err, "Failed to watch the authentication configuration", "file", f.path)
	})
	return nil
}

// reload puts the content of the file in force, if it has changed.
func (f *ConfigFile) reload(ctx context.Context) {
	content, err := os.ReadFile(f.path)
	change := "unreadable"
	if err == nil {
		if string(content) == f.done {
			f.failed = ""
			return
		}
		change = "content: " + string(content)
		err = f.apply(ctx, content)
	}
	if ctx.Err() != nil {
		return
	}
	logger := klog.FromContext(ctx).WithValues("file", f.path)
	if err == nil {
		f.failed = ""
		logger.Info("Reloaded the authentication configuration")
		metrics.RecordAuthenticationConfigAutomaticReloadSuccess(f.serverID, string(content))
		return
	}
	metrics.RecordAuthenticationConfigAutomaticReloadFailure(f.serverID)
	if change != f.failed {
		f.failed = change
		logger.Error(err, "Failed to reload the authentication configuration; the previous one stays in force")
	}
}

// apply puts the changed content in force. Content that is not valid is not tried again,
// but issuers that have not answered are.
func (f *ConfigFile) apply(ctx context.Context, content []byte) error {
	config, err := parseConfig(content, f.egress)
	if err == nil && !reflect.DeepEqual(config.Anonymous, f.config.Anonymous) {
		err = errors.New("anonymous: it cannot change while the server runs")
	}
	if err == nil {
		if err := f.replace(ctx, config); err != nil {
			return err
		}
	}
	f.done = string(content)
	return err
}

// replace puts a configuration in force when the issuers that it adds have answered.
func (f *ConfigFile) replace(ctx context.Context, config *apiserverapi.AuthenticationConfiguration) error {
	previous := f.current.Load()
	next, err := newIssuers(ctx, config, previous, f.egress, f.serverID)
	if err != nil {
		return err
	}
	if err := next.await(ctx, issuerTimeout); err != nil {
		next.cancelAdded()
		return err
	}
	f.current.Store(next)
	previous.retire(next, f.serverID)
	return nil
}
