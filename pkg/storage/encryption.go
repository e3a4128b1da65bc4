// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	encryptionmetrics "k8s.io/apiserver/pkg/server/options/encryptionconfig/metrics"
	"sigs.k8s.io/yaml"
)

// requireEncryptionKind returns an error for an encryption config without a kind or a version.
// The error of the library would have the content of the file, with the keys.
func requireEncryptionKind(file string) error {
	if file == "" {
		return nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return err // has the name of the file
	}
	if len(content) == 0 {
		return fmt.Errorf("%s: the file is empty", file)
	}
	content, err = yaml.YAMLToJSON(content)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	kind, err := json.DefaultMetaFactory.Interpret(content)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if kind.Kind == "" || kind.Version == "" {
		return fmt.Errorf("%s: the kind must be EncryptionConfiguration, and the apiVersion apiserver.config.k8s.io/v1", file)
	}
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
