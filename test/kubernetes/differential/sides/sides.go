// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sides starts a kube-apiserver and a standalone Borough with equal
// settings, to send the same requests to both and compare the responses. Borough is
// two sides: one for each group in which it serves the kinds. The only controllers are
// those of aggregated ClusterRoles and of the usage of ResourceQuotas: otherwise only
// requests change objects.
package sides

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
)

// Absent are the default admission plugins of kube-apiserver for Pods and
// Namespaces that Borough does not have. They use objects of kinds that Borough
// does not serve, or set fields that only a cluster with nodes uses.
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

// tokenFile has the tokens that both sides accept.
const tokenFile = `token-of-carol,carol,uid-of-carol,"team-a,team-b"
token-of-dave,dave,uid-of-dave
`

// Side is a server, and the group in which a client uses the kinds.
type Side struct {
	Name string
	// Group is the group of the kinds; empty is core.
	Group string
	// Prefix is the prefix of the API paths.
	Prefix string
	// Config and Kubeconfig (a path) are those of a client with all rights.
	Config     *rest.Config
	Kubeconfig string
}

// APIVersion returns the apiVersion of the objects.
func (s *Side) APIVersion() string { return strings.TrimPrefix(s.Group+"/v1", "/") }

// Pair is both servers.
type Pair struct {
	// Kubernetes and Borough get the same requests, for the core group.
	Kubernetes, Borough Side
	// OwnGroup is Borough with the kinds in its own group.
	OwnGroup Side

	dir     string
	cluster *testcluster.Cluster
	borough *harness.Borough
}

// Start starts both and returns once they are ready.
func Start(ctx context.Context) (_ *Pair, err error) {
	// Build all programs before a test waits for a process.
	if _, err := harness.Binary("borough-apiserver"); err != nil {
		return nil, err
	}
	p := &Pair{}
	if p.dir, err = os.MkdirTemp("", "borough-differential-"); err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Stop())
		}
	}()
	tokens := filepath.Join(p.dir, "tokens.csv")
	if err := os.WriteFile(tokens, []byte(tokenFile), 0o600); err != nil {
		return nil, fmt.Errorf("write a token file: %w", err)
	}
	if err := p.startKubernetes(ctx, "--token-auth-file="+tokens); err != nil {
		return nil, fmt.Errorf("start Kubernetes: %w", err)
	}
	if err := p.startBorough(ctx, "--token-auth-file="+tokens); err != nil {
		return nil, fmt.Errorf("start Borough: %w", err)
	}
	return p, nil
}

func (p *Pair) startKubernetes(ctx context.Context, flags ...string) (err error) {
	p.cluster, err = testcluster.Start(ctx, testcluster.Options{
		Etcd:            testcluster.EtcdOptions{Unsafe: true},
		OnlyControllers: []string{"clusterrole-aggregation-controller", "resourcequota-controller"},
		ControllerManagerFlags: []string{
			// The default rate is below that of the tests.
			"--kube-api-qps=1000", "--kube-api-burst=1000",
			// What a failed request was charged stays in the usage until then.
			"--resource-quota-sync-period=2s",
		},
		APIServerFlags: append(flags,
			"--disable-admission-plugins="+strings.Join(Absent, ","),
			"--allow-privileged", // as in every cluster
		),
	})
	if err != nil {
		return err
	}
	config := p.cluster.AdminConfig()
	kubeconfig, err := p.cluster.WriteKubeconfig("admin", config)
	p.Kubernetes = Side{Name: "Kubernetes", Prefix: "/api/v1", Config: config, Kubeconfig: kubeconfig}
	return err
}

func (p *Pair) startBorough(ctx context.Context, flags ...string) error {
	dir := filepath.Join(p.dir, "borough")
	p.borough = &harness.Borough{Dir: dir}
	// As in kube-apiserver. In a standalone server it is off by default.
	if err := p.borough.StartServer(ctx, append(flags, "--enable-garbage-collector")...); err != nil {
		return err
	}
	config, err := p.borough.LoadConfig("admin")
	p.Borough = Side{Name: "Borough", Prefix: "/api/v1", Config: config, Kubeconfig: filepath.Join(dir, "admin.kubeconfig")}
	p.OwnGroup = p.Borough
	p.OwnGroup.Name += " in its own group"
	p.OwnGroup.Group = v1.GroupName
	p.OwnGroup.Prefix = "/apis/" + v1.SchemeGroupVersion.String()
	return err
}

// Stop stops both, removes their state, and returns defects that Borough has
// reported.
func (p *Pair) Stop() error {
	var errs []error
	if p.borough != nil {
		errs = append(errs, p.borough.Stop())
	}
	if p.cluster != nil {
		errs = append(errs, p.cluster.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(p.dir))...)
}

// Logs returns the end of each process's log.
func (p *Pair) Logs() string { return p.cluster.Logs() + "\n" + p.borough.Logs() }
