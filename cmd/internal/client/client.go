// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package client has the flags with which a command connects to the server.
package client

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// Options are the flags of a client.
type Options struct {
	// Kubeconfig is the kubeconfig for the API. If empty, the process connects to
	// the cluster that it runs in.
	Kubeconfig string
	// QPS and Burst limit the requests to the API. A negative rate means no limit.
	QPS   float32
	Burst int

	file File // that Config has loaded
}

// New returns the defaults.
func New() *Options { return &Options{QPS: -1, Burst: 100} }

// AddFlags adds the flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, ""+
		"Kubeconfig for the server that serves Borough's API. If empty, connect to the cluster that the process runs in.")
	fs.Float32Var(&o.QPS, "kube-api-qps", o.QPS, ""+
		"Maximum number of requests per second to the server. -1 means no client-side limit; the server has its own limits.")
	fs.IntVar(&o.Burst, "kube-api-burst", o.Burst, ""+
		"Maximum burst of requests above --kube-api-qps. Without a limit there, it has no effect.")
}

// Validate returns the invalid flags.
func (o *Options) Validate() (errs []error) {
	if o.QPS == 0 {
		errs = append(errs, errors.New("--kube-api-qps: must not be 0; -1 means no limit"))
	}
	if o.QPS > 0 && o.Burst < 1 {
		errs = append(errs, fmt.Errorf("--kube-api-burst: must be at least 1 if --kube-api-qps is set, not %d", o.Burst))
	}
	return errs
}

// Config returns the config of a client that has the user agent.
func (o *Options) Config(userAgent string) (config *rest.Config, err error) {
	if o.Kubeconfig == "" {
		if config, err = rest.InClusterConfig(); err != nil {
			return nil, fmt.Errorf("pass --kubeconfig=FILE; without it: %w", err)
		}
	} else {
		o.file = File{Flag: "kubeconfig", Path: o.Kubeconfig}
		if config, err = o.file.Load(); err != nil {
			return nil, err
		}
	}
	config.QPS, config.Burst = o.QPS, o.Burst
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return rest.AddUserAgent(config, userAgent), nil
}
