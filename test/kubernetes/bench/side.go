// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
)

const (
	kube    = "Kubernetes"
	borough = "Borough"
	alone   = "" // figures that belong to neither side
)

// side is one of the two systems that are compared.
type side struct {
	name       string
	apiVersion string
	prefix     string // of the API paths
	config     *rest.Config
	userConfig func(ctx context.Context, user string, groups ...string) (*rest.Config, error)
	pids       func() []int
	server     func() int // the process of the API server
	kill       func()     // all processes; their state remains
	// startServer and startController start the processes again, and return when they are
	// ready. The server is that of the API, with its etcd.
	startServer, startController func(context.Context) error
	stop                         func() error

	clients               []*client
	names                 atomic.Int64
	hasPolicy, hasViewers bool
}

// starters start a side with new state, with flags of the server, and return when it is
// ready.
var starters = []func(ctx context.Context, flags ...string) (*side, error){startKube, startBorough}

var kubeOptions = testcluster.Options{
	// Otherwise a Pod has to wait until kube-controller-manager has created the
	// service account of its Namespace. Kubernetes' own tests do the same.
	APIServerFlags: []string{"--disable-admission-plugins=ServiceAccount"},
	Controllers:    []string{"resourcequota-controller"},
}

const (
	kubeVersion, kubePrefix       = "v1", "/api/v1"
	boroughVersion, boroughPrefix = "tenancy.borough.io/v1", "/apis/tenancy.borough.io/v1"
)

func startKube(ctx context.Context, flags ...string) (*side, error) {
	options := kubeOptions
	options.APIServerFlags = slices.Concat(options.APIServerFlags, flags)
	cluster, err := testcluster.Start(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("start Kubernetes: %w", err)
	}
	etcd := cluster.Etcd.Members[0]
	return &side{
		name: kube, apiVersion: kubeVersion, prefix: kubePrefix, config: cluster.AdminConfig(),
		userConfig: func(_ context.Context, user string, groups ...string) (*rest.Config, error) {
			return cluster.UserConfig(user, groups...)
		},
		pids: func() []int {
			return []int{etcd.Process.PID(), cluster.APIServer.PID(), cluster.ControllerManager.PID()}
		},
		server: func() int { return cluster.APIServer.PID() },
		kill: func() {
			for _, process := range []*harness.Process{cluster.ControllerManager, cluster.APIServer, etcd.Process} {
				process.Kill()
			}
		},
		startServer:     func(ctx context.Context) error { return inOrder(ctx, etcd.Start, cluster.StartAPIServer) },
		startController: cluster.StartControllerManager,
		stop:            cluster.Stop,
	}, nil
}

func startBorough(ctx context.Context, flags ...string) (*side, error) {
	dir, err := os.MkdirTemp("", "borough-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for Borough: %w", err)
	}
	b := &harness.Borough{Dir: dir}
	stop := func() error { return errors.Join(b.Stop(), os.RemoveAll(dir)) }
	startServer := func(ctx context.Context) error { return b.StartServer(ctx, flags...) }
	startController := func(ctx context.Context) error { return b.StartController(ctx) }
	if err := inOrder(ctx, startServer, startController); err != nil {
		return nil, errors.Join(fmt.Errorf("start Borough: %w", err), stop())
	}
	s, err := newBoroughSide(b)
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	s.pids = func() []int { return []int{b.Server.PID(), b.Controller.PID()} }
	s.server = func() int { return b.Server.PID() }
	s.kill = func() {
		b.Controller.Kill()
		b.Server.Kill()
	}
	s.startServer, s.startController, s.stop = startServer, startController, stop
	return s, nil
}

// newBoroughSide returns a server that runs, without its processes.
func newBoroughSide(b *harness.Borough) (*side, error) {
	config, err := b.LoadConfig("admin")
	if err != nil {
		return nil, err
	}
	return &side{
		name: borough, apiVersion: boroughVersion, prefix: boroughPrefix, config: config,
		userConfig: func(ctx context.Context, user string, groups ...string) (*rest.Config, error) {
			return boroughUser(ctx, b, user, groups...)
		},
	}, nil
}

// boroughUser returns the configuration of a client that authenticates as the user
// with a client certificate.
func boroughUser(ctx context.Context, b *harness.Borough, user string, groups ...string) (*rest.Config, error) {
	program, err := harness.Binary("borough-apiserver")
	if err != nil {
		return nil, err
	}
	args := []string{"kubeconfig", "--data-dir=" + b.Dir, "--user=" + user}
	for _, group := range groups {
		args = append(args, "--group="+group)
	}
	kubeconfig, err := exec.CommandContext(ctx, program, args...).Output()
	if err != nil {
		return nil, fmt.Errorf("run %s kubeconfig: %w", program, err)
	}
	return clientcmd.RESTConfigFromKubeConfig(kubeconfig)
}

func inOrder(ctx context.Context, steps ...func(context.Context) error) error {
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// measureStarts starts each side alone with new state, and restarts it.
func (b *bench) measureStarts(ctx context.Context, round int) error {
	for i := range starters {
		start := starters[(i+round)%len(starters)]
		began := time.Now()
		s, err := start(ctx)
		if err != nil {
			return err
		}
		fresh := time.Since(began)
		began = time.Now()
		s.kill()
		err = inOrder(ctx, s.startServer, s.startController)
		again := time.Since(began)
		if err := errors.Join(err, s.stop()); err != nil {
			return fmt.Errorf("restart %s: %w", s.name, err)
		}
		b.report.add(s.name, []figure{
			{row: "Start to ready, new", unit: seconds, value: fresh.Seconds()},
			{row: "Start to ready, after a crash", unit: seconds, value: again.Seconds()},
		})
	}
	return nil
}

// newName returns a name that was not used on this side before.
func (s *side) newName(prefix string) string { return fmt.Sprintf("%s-%d", prefix, s.names.Add(1)) }

// namespaced returns the path of a resource in a Namespace.
func (s *side) namespaced(namespace, resource string) string {
	return s.prefix + "/namespaces/" + namespace + "/" + resource
}
