// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

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
	// startTimeout bounds the start of a process. It usually takes seconds, but
	// longer on a busy machine.
	startTimeout = 3 * time.Minute
	// logLines is the number of lines of each process's log that are shown after a
	// failure.
	logLines = 40
)

// startReady starts a program and returns once a GET of the path, with the
// client configuration, returns 200. It fails at once if the program ends.
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

// Await polls the condition until it returns nil, for at most the timeout. It
// then returns the condition's last error.
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
			last = reason // rather than the error of the expired context
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), last)
		case <-tick.C:
		}
	}
}

// get returns an error unless the URL returns 200. It decodes the JSON body
// unless into is nil.
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

// kill kills the processes that were started.
func kill(processes ...*harness.Process) {
	for _, process := range processes {
		if process != nil {
			process.Kill()
		}
	}
}

// stop stops a process gracefully unless it never started or has ended.
func stop(process *harness.Process) error {
	if process == nil {
		return nil
	}
	select {
	case <-process.Done(): // the test ended it
		return process.Flaws()
	default:
		// A process that a test has paused does not receive the signal.
		_ = process.Resume() // fails only if it has ended
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

// freePorts returns different TCP ports that were just free on 127.0.0.1.
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
