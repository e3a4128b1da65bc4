// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// The program staticpods reads the Pods of a node from a URL with the kubelet's own code, as
// a kubelet with staticPodURL does, and prints what the kubelet would then do: each update of
// its Pods as a line of JSON. It is a separate program because only this module requires
// k8s.io/kubernetes.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/config"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
)

// update is a change of the kubelet's Pods.
type update struct {
	Operation string
	Pods      []*corev1.Pod
}

var operations = map[kubetypes.PodOperation]string{
	kubetypes.ADD:       "ADD",
	kubetypes.UPDATE:    "UPDATE",
	kubetypes.DELETE:    "DELETE",
	kubetypes.REMOVE:    "REMOVE",
	kubetypes.RECONCILE: "RECONCILE",
}

func main() {
	url := flag.String("url", "", "the kubelet's staticPodURL")
	token := flag.String("token", "", "a bearer token, in the kubelet's staticPodURLHeader")
	node := flag.String("node", "", "the name of the node")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *url, *token, *node); err != nil {
		fmt.Fprintln(os.Stderr, "staticpods:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url, token, node string) error {
	header := http.Header{}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	events := record.NewBroadcaster(record.WithContext(ctx))
	defer events.Shutdown()
	recorder := events.NewRecorder(nil, corev1.EventSource{Component: "kubelet"})
	pods := config.NewPodConfig(recorder, observer{})
	config.NewSourceURL(klog.FromContext(ctx), url, header, types.NodeName(node), 100*time.Millisecond, pods.Channel(ctx, kubetypes.HTTPSource))
	lines := json.NewEncoder(os.Stdout)
	for {
		select {
		case u := <-pods.Updates():
			if err := lines.Encode(update{operations[u.Op], u.Pods}); err != nil {
				return fmt.Errorf("print an update: %w", err)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// observer is for a metric of the kubelet.
type observer struct{}

func (observer) ObservedPodOnWatch(klog.Logger, *corev1.Pod, time.Time) {}
