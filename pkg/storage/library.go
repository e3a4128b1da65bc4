// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"fmt"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/options"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/storage/etcd3/metrics"
)

// applyLibrary does what ApplyWithStorageFactoryTo of the library's options does,
// except for the health checks and the metrics: those of the library dial, for up to
// 20 s, and do not know the embedded member.
func applyLibrary(etcd *options.EtcdOptions, factory serverstorage.StorageFactory, clusters clusters, c *genericapiserver.Config) error {
	err := requireEncryptionKind(etcd.EncryptionProviderConfigFilepath)
	if err == nil {
		err = applyEncryption(etcd, c)
	}
	if err != nil {
		return fmt.Errorf("--encryption-provider-config: %w", err)
	}
	withoutHealth := *etcd
	withoutHealth.SkipHealthEndpoints = true
	if err := withoutHealth.ApplyWithStorageFactoryTo(factory, c); err != nil {
		// Nothing else can fail without the health checks.
		return fmt.Errorf("--encryption-provider-config: %w", err)
	}
	if reloaded, ok := c.ResourceTransformers.(healthz.HealthChecker); ok && etcd.EncryptionProviderConfigAutomaticReload && !etcd.SkipHealthEndpoints {
		c.HealthzChecks = append(c.HealthzChecks, reloaded)
		c.ReadyzChecks = append(c.ReadyzChecks, reloaded)
	}
	metrics.SetStorageMonitorGetter(clusters.monitors)
	if !etcd.SkipHealthEndpoints {
		addChecks(etcd, clusters, c)
	}
	return c.AddPostStartHook("await-etcd", func(hook genericapiserver.PostStartHookContext) error {
		// In the background: a hook that does not return is a failed check of /livez.
		for _, cluster := range clusters {
			go cluster.await(hook.Context, etcd.StorageConfig.ReadycheckTimeout)
		}
		go func() {
			<-c.DrainedNotify()
			clusters.close()
		}()
		return nil
	})
}

// addChecks adds the checks that the library adds. In addition, a server that has
// never reached etcd is not ready, even for a probe that leaves out the others.
func addChecks(etcd *options.EtcdOptions, clusters clusters, c *genericapiserver.Config) {
	for i, cluster := range clusters {
		health, ready, reached := "etcd", "etcd-readiness", "etcd-reached"
		if i > 0 {
			health, ready, reached = fmt.Sprintf("etcd-override-%d", i-1), fmt.Sprintf("etcd-override-readiness-%d", i-1), fmt.Sprintf("etcd-override-reached-%d", i-1)
		}
		c.AddHealthChecks(cluster.check(health, "etcd", etcd.StorageConfig.HealthcheckTimeout))
		c.AddReadyzChecks(
			cluster.check(ready, "etcd-readiness", etcd.StorageConfig.ReadycheckTimeout),
			cluster.checkReached(reached, "etcd-reached", etcd.StorageConfig.ReadycheckTimeout))
	}
}
