// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

// Options configure a cluster. The zero value gives the default cluster.
type Options struct {
	// Etcd configures the cluster's etcd.
	Etcd EtcdOptions
	// Controllers are the controllers that kube-controller-manager runs in
	// addition to the DefaultControllers; "*" adds all that it runs by default.
	Controllers []string
	// OnlyControllers replace all other controllers.
	OnlyControllers []string
	// NoControllerManager leaves out kube-controller-manager, so that no
	// controller changes or waits for anything.
	NoControllerManager bool
	// AdminControllerManager makes kube-controller-manager and all its controllers
	// use the kubeconfig of an administrator, as some hand-made clusters do.
	AdminControllerManager bool
	// APIServerFlags and ControllerManagerFlags are added to the default flags.
	// They override those that take one value.
	APIServerFlags, ControllerManagerFlags []string
}

// DefaultControllers manage namespaces, owner references, service accounts and
// roles. The other controllers of kube-controller-manager are for nodes and
// workloads.
var DefaultControllers = []string{
	"namespace-controller",
	"garbage-collector-controller",
	"serviceaccount-controller",
	"root-ca-certificate-publisher-controller",
	"clusterrole-aggregation-controller",
}

// Cluster is a Kubernetes control plane. Tests may kill, pause and restart its
// processes.
type Cluster struct {
	// Dir holds all state. Stop removes it.
	Dir string

	Etcd              *Etcd
	APIServer         *harness.Process
	ControllerManager *harness.Process
	Network           *Network

	options Options
	ca      *CA // signs the certificates of users and servers
	pki     pki
	port    int // of kube-apiserver
	kcmPort int
	admin   *rest.Config
}

// Start starts a cluster and returns it once it is ready.
func Start(ctx context.Context, options Options) (_ *Cluster, err error) {
	c := &Cluster{options: options}
	if c.Dir, err = os.MkdirTemp("", "borough-kubernetes-"); err != nil {
		return nil, fmt.Errorf("make a directory for a cluster: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	c.pki.dir = filepath.Join(c.Dir, "pki")
	if err := c.makePKI(); err != nil {
		return nil, fmt.Errorf("make the certificates of a cluster: %w", err)
	}
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	c.port, c.kcmPort = ports[0], ports[1]
	if c.admin, err = c.UserConfig("admin", "system:masters"); err != nil {
		return nil, err
	}
	if c.Network, err = newNetwork(c.Dir); err != nil {
		return nil, err
	}
	if c.Etcd, err = StartEtcd(ctx, filepath.Join(c.Dir, "etcd"), options.Etcd); err != nil {
		return nil, err
	}
	if err := c.StartAPIServer(ctx); err != nil {
		return nil, err
	}
	if options.NoControllerManager {
		return c, nil
	}
	if err := c.StartControllerManager(ctx); err != nil {
		return nil, err
	}
	if options.OnlyControllers != nil {
		return c, nil
	}
	return c, c.awaitSystem(ctx)
}

// awaitSystem waits until kube-apiserver and the controllers have created the
// objects that users of a cluster rely on.
func (c *Cluster) awaitSystem(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	err = poll.Until(ctx, startTimeout, func(ctx context.Context) error {
		if _, err := client.CoreV1().ConfigMaps("kube-system").Get(ctx, "extension-apiserver-authentication", metav1.GetOptions{}); err != nil {
			return err
		}
		_, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("wait for the objects of a new cluster: %w", err)
	}
	return nil
}

// New calls Start for a test and stops the cluster when the test ends. If the
// test failed, it logs the processes' logs.
func New(t testing.TB, options Options) *Cluster {
	t.Helper()
	c, err := Start(t.Context(), options)
	if err != nil {
		t.Fatalf("start a cluster: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.Logs())
		}
		if err := c.Stop(); err != nil {
			t.Errorf("stop the cluster: %v", err)
		}
	})
	return c
}

// Stop kills all processes and removes the state.
func (c *Cluster) Stop() error {
	kill(c.ControllerManager, c.APIServer)
	if c.Etcd != nil {
		c.Etcd.Kill()
	}
	if c.Network != nil {
		c.Network.close()
	}
	return os.RemoveAll(c.Dir)
}

// Logs returns the end of each process's log.
func (c *Cluster) Logs() string {
	processes := []*harness.Process{c.APIServer, c.ControllerManager}
	if c.Etcd != nil {
		processes = append(processes, c.Etcd.processes()...)
	}
	return tails(processes...)
}

// Client returns a typed client of the cluster with all rights.
func (c *Cluster) Client(t testing.TB) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.AdminConfig())
	if err != nil {
		t.Fatalf("make a client: %v", err)
	}
	return client
}
