// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	encryptionmetrics "k8s.io/apiserver/pkg/server/options/encryptionconfig/metrics"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3/metrics"
	"k8s.io/apiserver/pkg/storage/feature"

	"github.com/borough-io/borough/pkg/storage/embedded"
)

// applyEmbedded does for the embedded member what the library's options do for
// etcd servers.
func applyEmbedded(etcd *options.EtcdOptions, factory serverstorage.StorageFactory, server *embedded.Server, c *genericapiserver.Config) error {
	m := &member{server: server, client: server.Client()}
	// Consistent reads from the watch cache need progress requests for watches. The
	// library checks for support at the endpoints of a client, and this one has none.
	feature.DefaultFeatureSupportChecker.CheckClient(m.client.Ctx(), m, storage.RequestWatchProgress)

	skipHealth := etcd.SkipHealthEndpoints
	if !skipHealth {
		key := path.Join("/", etcd.StorageConfig.Prefix, "health")
		c.AddHealthChecks(m.check("etcd", key, etcd.StorageConfig.HealthcheckTimeout))
		c.AddReadyzChecks(m.check("etcd-readiness", key, etcd.StorageConfig.ReadycheckTimeout))
	}
	if err := applyEncryption(etcd, c); err != nil {
		return fmt.Errorf("--encryption-provider-config: %w", err)
	}
	withoutHealth := *etcd
	withoutHealth.SkipHealthEndpoints = true // the library's checks would dial
	if err := withoutHealth.ApplyWithStorageFactoryTo(factory, c); err != nil {
		return err
	}
	if reloaded, ok := c.ResourceTransformers.(healthz.HealthChecker); ok && etcd.EncryptionProviderConfigAutomaticReload && !skipHealth {
		c.HealthzChecks = append(c.HealthzChecks, reloaded)
		c.ReadyzChecks = append(c.ReadyzChecks, reloaded)
	}
	metrics.SetStorageMonitorGetter(func() ([]metrics.Monitor, error) { return []metrics.Monitor{m}, nil })
	return nil
}

// applyEncryption loads a static encryption config, because the library adds its
// health checks only together with the etcd checks, which dial. A config that is
// reloaded is left to the library.
func applyEncryption(etcd *options.EtcdOptions, c *genericapiserver.Config) error {
	file := etcd.EncryptionProviderConfigFilepath
	if file == "" || etcd.EncryptionProviderConfigAutomaticReload || c.ResourceTransformers != nil {
		return nil
	}
	config, err := encryptionconfig.LoadEncryptionConfig(wait.ContextForChannel(c.DrainedNotify()), file, false, c.APIServerID)
	if err != nil {
		return err
	}
	encryptionmetrics.RecordEncryptionConfigLastConfigInfo(c.APIServerID, config.EncryptionFileContentHash)
	c.ResourceTransformers = encryptionconfig.StaticTransformers(config.Transformers)
	if !etcd.SkipHealthEndpoints {
		c.HealthzChecks = append(c.HealthzChecks, config.HealthChecks...)
		c.ReadyzChecks = append(c.ReadyzChecks, config.HealthChecks...)
	}
	return nil
}

// member adapts the embedded member to the library's checks and metrics.
type member struct {
	server *embedded.Server
	client *clientv3.Client
}

// Endpoints returns the name of the member.
func (m *member) Endpoints() []string { return []string{"embedded"} }

// Status returns the member's status for any endpoint.
func (m *member) Status(ctx context.Context, _ string) (*clientv3.StatusResponse, error) {
	return m.server.Status(ctx)
}

// Monitor implements metrics.Monitor.
func (m *member) Monitor(ctx context.Context) (metrics.StorageMetrics, error) {
	status, err := m.server.Status(ctx)
	if err != nil {
		return metrics.StorageMetrics{}, fmt.Errorf("getting the status of the embedded etcd: %w", err)
	}
	return metrics.StorageMetrics{Size: status.DbSize}, nil
}

// Close implements metrics.Monitor. The embedded server closes the client.
func (m *member) Close() error { return nil }

// check returns a check that reads the key, which need not exist.
func (m *member) check(name, key string, timeout time.Duration) healthz.HealthChecker {
	return healthz.NamedGroupedCheck(name, name, func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), timeout)
		defer cancel()
		if _, err := m.client.Get(ctx, key); err != nil {
			return fmt.Errorf("reading from the embedded etcd: %w", err)
		}
		return nil
	})
}
