// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package hostcluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/test/e2e/harness"
)

const (
	// startTimeout is how long a process may take to be ready. Usual are
	// seconds; a busy machine needs more.
	startTimeout = 3 * time.Minute
	// logLines is how much of each process's log is shown after a failure.
	logLines = 40
)

// startReady starts a program and returns once it answers 200 on the path, asked
// as the configuration says. It fails at once if the program ends.
func startReady(ctx context.Context, config *rest.Config, path, program string, args ...string) (*harness.Process, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	config = rest.CopyConfig(config)
	config.Timeout = 5 * time.Second
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of %s: %w", config.Host, err)
	}
	defer client.CloseIdleConnections()
	process, err := harness.StartProcess(program, args...)
	if err != nil {
		return nil, err
	}
	if err := process.Await(ctx, func(ctx context.Context) error { return get(ctx, client, config.Host+path, nil) }); err != nil {
		process.Kill()
		return nil, err
	}
	return process, nil
}

// Await calls condition, every now and then, until it returns nil, for at most
// the timeout. It returns the last reason if that never happens.
func Await(ctx context.Context, timeout time.Duration, condition func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		reason := condition(ctx)
		if reason == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = reason // and not that time is up
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), last)
		case <-tick.C:
		}
	}
}

// get returns an error unless the URL answers 200. It decodes the answer, which
// is JSON, unless into is nil.
func get(ctx context.Context, client *http.Client, url string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", url, response.Status, body)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("decode the answer of %s: %w", url, err)
	}
	return nil
}

// kill ends processes at once, save those that never started.
func kill(processes ...*harness.Process) {
	for _, process := range processes {
		if process != nil {
			process.Kill()
		}
	}
}

// stop stops a process in good order unless it never started or has ended.
func stop(process *harness.Process) error {
	if process == nil {
		return nil
	}
	select {
	case <-process.Done(): // a test's own doing
		return process.Flaws()
	default:
		// One that a test has paused would not hear of it.
		_ = process.Resume() // fails only when it has ended
		return process.Stop()
	}
}

func tails(processes ...*harness.Process) string {
	var logs []string
	for _, process := range processes {
		if process != nil {
			logs = append(logs, process.Tail(logLines))
		}
	}
	return strings.Join(logs, "\n")
}

// freePorts returns TCP ports that were free on 127.0.0.1 a moment ago, all
// different.
func freePorts(n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		var err error
		if ports[i], err = harness.FreePort(); err != nil {
			return nil, err
		}
	}
	return ports, nil
}

func localURL(port int) string {
	return "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
