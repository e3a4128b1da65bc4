// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/borough-io/borough/test/kubernetes/testcluster"
)

const (
	deployed          = " through kube-apiserver"
	deployedCreateRow = "Create Pods" + deployed + ", 32 clients"
	deployedQuotaRow  = "Create Pods in one Namespace with a quota" + deployed + ", 32 clients"
	deployedDeleteRow = "Delete 300 Namespaces at once" + deployed
)

// measureDeployed measures Borough as it is deployed into a cluster: behind
// kube-apiserver, with an external etcd of its own. Creates are compared with those of
// the same kube-apiserver.
func (b *bench) measureDeployed(ctx context.Context, _ int) (err error) {
	environment, err := etcdEnvironment()
	if err != nil {
		return err
	}
	etcdOptions := testcluster.EtcdOptions{Environment: environment}
	options := kubeOptions
	options.Etcd = etcdOptions // the same for both
	cluster, err := testcluster.Start(ctx, options)
	if err != nil {
		return fmt.Errorf("start Kubernetes: %w", err)
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	etcd, err := testcluster.StartEtcd(ctx, filepath.Join(cluster.Dir, "borough-etcd"), etcdOptions)
	if err != nil {
		return fmt.Errorf("start the etcd of Borough: %w", err)
	}
	defer etcd.Kill()
	deployment, err := cluster.Deploy(ctx, testcluster.BoroughOptions{Etcd: etcd})
	if err != nil {
		return fmt.Errorf("deploy Borough: %w", err)
	}
	defer func() { err = errors.Join(err, deployment.Stop()) }()

	stopProfiles, err := b.profiles.collect(ctx, "deployed", deployment.Servers[0].Direct(cluster.AdminConfig()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopProfiles()) }()

	sides := []*side{
		{name: kube, apiVersion: kubeVersion, prefix: kubePrefix, config: cluster.AdminConfig()},
		{name: borough, apiVersion: boroughVersion, prefix: boroughPrefix, config: cluster.AdminConfig()},
	}
	for round := range deployedRounds {
		for i := range sides {
			s := sides[(i+round)%len(sides)]
			for _, row := range []string{deployedCreateRow, deployedQuotaRow} {
				namespace, err := s.newNamespace(ctx)
				if err != nil {
					return err
				}
				if row == deployedQuotaRow {
					if err := s.createQuota(ctx, namespace); err != nil {
						return err
					}
				}
				o, err := s.fill(ctx, manyClients, b.size.create, namespace)
				if err != nil {
					return err
				}
				b.report.add(s.name, o.figures(row))
			}
		}
	}
	took, err := deleteTogether(ctx, sides[1], b.size)
	if err != nil {
		return err
	}
	took[0].row += deployed
	b.report.add(borough, took)
	return nil
}

// deployedRounds is the number of rounds on one cluster.
const deployedRounds = 5

// etcdEnvironment returns the variables that the manifest of etcd sets to a value.
func etcdEnvironment() ([]string, error) {
	set, err := testcluster.EtcdManifest()
	if err != nil {
		return nil, err
	}
	var environment []string
	for _, variable := range set.Spec.Template.Spec.Containers[0].Env {
		if variable.Value != "" {
			environment = append(environment, variable.Name+"="+variable.Value)
		}
	}
	return environment, nil
}
