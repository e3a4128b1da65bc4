// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package boroughtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/metrics"

	"github.com/borough-io/borough/cmd/borough-apiserver/app/options"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/controller/namespace"
)

const (
	// workers is the number of Namespaces that the controller purges concurrently, by
	// default.
	workers = 10
	// readyInterval is between two checks whether the server is ready. They are calls
	// in the process.
	readyInterval = 2 * time.Millisecond
)

// process is a server and a namespace controller that run, until they are stopped or
// crash.
type process struct {
	listener *listener
	deps     *options.Dependencies
	stop     context.CancelFunc // of the server
	// stopped is received from once.
	stopped        chan error
	stopController func() // returns when it has stopped
}

// startProcess returns when the server is ready. The context has the logger; its end
// ends the start.
func startProcess(ctx context.Context, dir string, port, maxNamespacesPerUser int) (_ *process, err error) {
	p := &process{stopController: func() {}}
	if p.listener, err = listen(net.JoinHostPort(host, strconv.Itoa(port))); err != nil {
		return nil, err
	}
	o, err := newOptions(dir, port, maxNamespacesPerUser, p.listener)
	if err == nil {
		p.deps, err = o.Open(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, p.listener.Close())
	}
	config, err := o.Config(p.deps)
	var server *genericapiserver.GenericAPIServer
	if err == nil {
		server, err = config.Complete().New()
	}
	if err != nil {
		return nil, errors.Join(err, p.deps.Close())
	}
	p.run(ctx, server)
	if err = p.awaitReady(ctx, config.Generic.LoopbackClientConfig); err == nil {
		err = p.startController(ctx, dir)
	}
	if err != nil {
		return nil, errors.Join(err, p.end(kill))
	}
	return p, nil
}

// newOptions returns the options of a standalone server.
func newOptions(dir string, port, maxNamespacesPerUser int, listener net.Listener) (*options.Options, error) {
	o := options.New()
	o.Standalone = true
	o.DataDir = dir
	o.EphemeralEtcd = true
	o.MaxNamespacesPerUser = maxNamespacesPerUser
	o.DefaultLimits = false // objects in the Namespace default are what a test makes them
	o.SecureServing.BindPort = port
	o.SecureServing.Listener = listener
	if err := o.Complete(pflag.NewFlagSet("", pflag.ContinueOnError)); err != nil {
		return nil, err
	}
	return o, o.Validate()
}

func (p *process) run(ctx context.Context, server *genericapiserver.GenericAPIServer) {
	ctx, p.stop = context.WithCancel(context.WithoutCancel(ctx))
	p.stopped = make(chan error, 1)
	prepared := server.PrepareRun()
	go func() { p.stopped <- prepared.RunWithContext(ctx) }()
}

// awaitReady returns when the server is ready, or with the reason why it is not.
func (p *process) awaitReady(ctx context.Context, loopback *rest.Config) error {
	client, err := rest.HTTPClientFor(loopback)
	if err != nil {
		return fmt.Errorf("set up the check of readiness: %w", err)
	}
	var unready error
	err = wait.PollUntilContextCancel(ctx, readyInterval, true, func(ctx context.Context) (bool, error) {
		select {
		case err := <-p.stopped:
			p.stopped <- err
			return false, fmt.Errorf("the server has stopped: %w", err)
		default:
			unready = getReadyz(ctx, client, loopback.Host)
			return unready == nil, nil
		}
	})
	if ctx.Err() != nil {
		return fmt.Errorf("the server is not ready: %w", unready)
	}
	return err
}

// getReadyz returns an error with the checks that fail.
func getReadyz(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(string(body))
	}
	return err
}

// startController starts the controller with the identity that the server made for it.
func (p *process) startController(ctx context.Context, dir string) error {
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, options.ControllerKubeconfig))
	if err != nil {
		return fmt.Errorf("read the kubeconfig of the controller: %w", err)
	}
	config.QPS = -1
	config.ContentType = runtime.ContentTypeProtobuf
	controller, err := namespace.New(config, []string{v1.GroupName}, metrics.NewKubeRegistry())
	if err != nil {
		return fmt.Errorf("set up the controller: %w", err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { controller.RunInformer(ctx) })
	running.Go(func() { controller.RunWorkers(ctx, workers) })
	p.stopController = func() {
		cancel()
		running.Wait()
	}
	return nil
}

// ending is how a process ends.
type ending int

const (
	// shutDown announces the end on the connections, which takes a second, and waits
	// for requests and watches.
	shutDown ending = iota
	// kill cuts off connections and storage where they are.
	kill
)

// end returns when nothing of the process is left.
func (p *process) end(how ending) error {
	// First, because without a server its client would wait before it tries again.
	p.stopController()
	var errs []error
	if how == kill {
		p.listener.cutOff()
		errs = append(errs, p.deps.CloseEtcd())
	}
	p.stop()
	errs = append(errs, <-p.stopped, p.deps.Close())
	// A connection that was accepted just before the shutdown may not know of it.
	p.listener.cutOff()
	return errors.Join(errs...)
}
