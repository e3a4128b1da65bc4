// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Command cost runs a server, sends it expensive requests, and prints the cost of
// each as a line of JSON: the memory allocated and the basic blocks of code executed.
// It does not measure time. It must be built with -cover -covermode=atomic.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"runtime/coverage"
	"strconv"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/borough-io/borough/cmd/borough-apiserver/app"
	"github.com/borough-io/borough/cmd/borough-apiserver/app/options"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

func main() {
	bodies := flag.Int("bodies", 25, "number of generated bodies to send; -1 is all")
	seed := flag.Uint64("seed", 0, "the seed of the choice")
	flag.Parse()
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)
	if err := run(*bodies, *seed); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Result is the cost of a request with a quarter of the maximum number of elements,
// and with the maximum.
type Result struct {
	Name           string
	Stored         int // the size of the object that is changed, if it is large
	Quarter, Whole Cost
}

// Cost is the cost of a request of Size bytes, and the code of its response.
type Cost struct {
	Size, Code    int
	Bytes, Blocks uint64
}

func run(bodies int, seed uint64) (err error) {
	dir, err := os.MkdirTemp("", "cost-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, stop, err := start(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	for _, object := range setup {
		if answer := s.do(target{"POST", object.path, "application/json"}, object.body); answer.Code != http.StatusCreated {
			return fmt.Errorf("create %.80s: %.500s", object.body, answer.Body)
		}
	}
	output := json.NewEncoder(os.Stdout)
	for _, r := range append(hostileRequests(), generatedRequests(rand.New(rand.NewPCG(seed, 0)), bodies)...) {
		result := Result{Name: r.name + " (" + r.contentType + ")", Stored: r.stored}
		s.do(r.target, r.body(1)) // fills caches
		if result.Quarter, err = s.cost(r.target, r.body(r.max/4)); err != nil {
			return err
		}
		if result.Whole, err = s.cost(r.target, r.body(r.max)); err != nil {
			return err
		}
		if err := output.Encode(result); err != nil {
			return err
		}
	}
	return nil
}

// server is a server that is called directly, without a network.
type server struct {
	handler http.Handler
	token   string
}

func start(dir string) (_ *server, stop func() error, err error) {
	port, err := harness.FreePort()
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var o *options.Options
	command := app.NewCommand(func(_ context.Context, parsed *options.Options) error { o = parsed; return nil })
	command.SetArgs([]string{"--standalone", "--data-dir=" + dir, "--secure-port=" + strconv.Itoa(port)})
	if err := command.ExecuteContext(ctx); err != nil {
		cancel()
		return nil, nil, err
	}
	deps, err := o.Open(ctx)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	done := make(chan error, 1)
	stop = func() error {
		cancel()
		return errors.Join(<-done, deps.Close())
	}
	config, err := o.Config(deps)
	if err != nil {
		done <- err
		return nil, nil, stop()
	}
	generic, err := config.Complete().New()
	if err != nil {
		done <- err
		return nil, nil, stop()
	}
	prepared := generic.PrepareRun()
	go func() { done <- prepared.RunWithContext(ctx) }()
	s := &server{generic.Handler, config.Generic.LoopbackClientConfig.BearerToken}
	err = poll.Until(ctx, time.Minute, func(context.Context) error {
		if answer := s.do(target{"GET", "/readyz", ""}, ""); answer.Code != http.StatusOK {
			return errors.New(answer.Body.String())
		}
		return nil
	})
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("wait for the server to be ready: %w", err), stop())
	}
	return s, stop, nil
}

func (s *server) do(to target, body string) *httptest.ResponseRecorder {
	if to.method == "POST" { // the name of an object that does not exist
		body = strings.Replace(strings.Replace(body, `"metadata":{"name":"o"`, `"metadata":{"name":"n"`, 1), "  name: o\n", "  name: n\n", 1)
	}
	req := httptest.NewRequest(to.method, "https://localhost"+to.path, bytes.NewReader([]byte(body)))
	req.Header.Set("Authorization", "Bearer "+s.token)
	if to.contentType != "" {
		req.Header.Set("Content-Type", to.contentType)
	}
	answer := httptest.NewRecorder()
	s.handler.ServeHTTP(answer, req)
	return answer
}

func (s *server) cost(to target, body string) (Cost, error) {
	if err := coverage.ClearCounters(); err != nil {
		return Cost{}, err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	answer := s.do(to, body)
	runtime.ReadMemStats(&after)
	executed, err := blocks()
	return Cost{len(body), answer.Code, after.TotalAlloc - before.TotalAlloc, executed}, err
}
