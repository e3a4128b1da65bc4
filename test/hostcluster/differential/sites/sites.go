// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sites starts a kube-apiserver and a standalone Borough that are alike,
// to send both the same requests and compare what comes back. No controllers run
// on either: an object changes by requests alone.
package sites

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/e2e/harness"
	"github.com/borough-io/borough/test/hostcluster"
)

// Absent are the admission plugins that kube-apiserver runs by default, that
// have to do with Pods and Namespaces, and that Borough does not have. They look
// at objects of kinds that Borough does not serve, or write what only a cluster
// with nodes makes use of.
var Absent = []string{
	"DefaultTolerationSeconds",
	"NodeDeclaredFeatureValidator",
	"PodResizeValidator",
	"PodSecurity",
	"PodTopologyLabels",
	"Priority",
	"RuntimeClass",
	"ServiceAccount",
}

// Site is one of the two.
type Site struct {
	Name string
	// Group of the kinds; empty is core.
	Group string
	// Prefix is what the paths of the API begin with.
	Prefix string
	// Config and Kubeconfig, a path, are those of a client with all rights.
	Config     *rest.Config
	Kubeconfig string
}

// APIVersion is what an object's apiVersion says.
func (s *Site) APIVersion() string { return strings.TrimPrefix(s.Group+"/v1", "/") }

// Pair is both.
type Pair struct {
	Kubernetes, Borough Site

	cluster *hostcluster.Cluster
	borough *harness.Borough
}

// Start starts both and returns them when they are ready.
func Start(ctx context.Context) (_ *Pair, err error) {
	// Whatever has to be built is built before anything waits for a process.
	if _, err := harness.Binary("borough-apiserver"); err != nil {
		return nil, err
	}
	p := &Pair{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Stop())
		}
	}()
	if err := p.startKubernetes(ctx); err != nil {
		return nil, fmt.Errorf("start Kubernetes: %w", err)
	}
	if err := p.startBorough(ctx); err != nil {
		return nil, fmt.Errorf("start Borough: %w", err)
	}
	return p, nil
}

func (p *Pair) startKubernetes(ctx context.Context) (err error) {
	p.cluster, err = hostcluster.Start(ctx, hostcluster.Options{
		Etcd:                hostcluster.EtcdOptions{Unsafe: true},
		NoControllerManager: true,
		APIServerFlags: []string{
			"--disable-admission-plugins=" + strings.Join(Absent, ","),
			"--allow-privileged", // as every cluster's is
		},
	})
	if err != nil {
		return err
	}
	config := p.cluster.AdminConfig()
	kubeconfig, err := p.cluster.WriteKubeconfig("admin", config)
	p.Kubernetes = Site{Name: "Kubernetes", Prefix: "/api/v1", Config: config, Kubeconfig: kubeconfig}
	return err
}

func (p *Pair) startBorough(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "borough-differential-")
	if err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	p.borough = &harness.Borough{Dir: dir}
	// As kube-apiserver has it. By itself a standalone server has it off.
	if err := p.borough.StartServer(ctx, "--enable-garbage-collector"); err != nil {
		return err
	}
	config, err := p.borough.LoadConfig("admin")
	p.Borough = Site{
		Name:       "Borough",
		Group:      v1.GroupName,
		Prefix:     "/apis/" + v1.SchemeGroupVersion.String(),
		Config:     config,
		Kubeconfig: filepath.Join(dir, "admin.kubeconfig"),
	}
	return err
}

// Stop ends both, removes their state, and says what was wrong with Borough.
func (p *Pair) Stop() error {
	var errs []error
	if p.borough != nil {
		errs = append(errs, p.borough.Stop(), os.RemoveAll(p.borough.Dir))
	}
	if p.cluster != nil {
		errs = append(errs, p.cluster.Stop())
	}
	return errors.Join(errs...)
}

// Logs is the end of what each process wrote.
func (p *Pair) Logs() string { return p.cluster.Logs() + "\n" + p.borough.Logs() }
