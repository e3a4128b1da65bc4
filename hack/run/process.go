// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

const (
	// grace is how long a process may take to end after SIGTERM.
	grace = 10 * time.Second
	// readyInterval is the interval of the readiness probe. No event reports
	// that another process is ready.
	readyInterval = 50 * time.Millisecond
)

// process is one of the two binaries while it runs.
type process struct {
	name, log string
	cmd       *exec.Cmd
	exited    chan struct{} // closed after err holds the result of Wait
	err       error
}

func start(path, logPath string, args ...string) (*process, error) {
	name := filepath.Base(path)
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", name, err)
	}
	cmd := exec.Command(path, args...)
	out := &output{log: log, terminal: os.Stderr, name: name}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = attributes()
	if err := cmd.Start(); err != nil {
		log.Close()
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{name: name, log: logPath, cmd: cmd, exited: make(chan struct{})}
	go func() {
		defer close(p.exited)
		defer log.Close()
		p.err = cmd.Wait()
		out.flush()
	}()
	return p, nil
}

// stop stops the process and returns when it has exited.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails only if it has exited
	select {
	case <-p.exited:
	case <-time.After(grace):
		fmt.Fprintf(os.Stderr, "make run: %s did not exit within %s; killing it\n", p.name, grace)
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

// failure reports how the process exited. It may be called after exited is closed.
func (p *process) failure() error {
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	return fmt.Errorf("%s exited (%s); its log is %s", p.name, how, p.log)
}

// waitReady returns nil when the server is ready, and an error when it exits or
// ctx ends before that.
func (p *process) waitReady(ctx context.Context, port int, caFile string) error {
	tick := time.NewTicker(readyInterval)
	defer tick.Stop()
	for {
		if ready(ctx, port, caFile) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.exited:
			return p.failure()
		case <-tick.C:
		}
	}
}

// ready reads the CA each time, because the server creates it on its first start.
func ready(ctx context.Context, port int, caFile string) bool {
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return false
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client := http.Client{
		Timeout:   2 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/readyz", port), nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// quiet matches log lines that are not errors: informational ones and warnings of
// klog.
var quiet = regexp.MustCompile(`^[IW]\d{4} `)

// output writes everything to the log and, line by line, errors to the terminal.
type output struct {
	log, terminal io.Writer
	name          string
	rest          []byte // the beginning of an incomplete line
}

func (o *output) Write(b []byte) (int, error) {
	if n, err := o.log.Write(b); err != nil {
		return n, fmt.Errorf("write the log of %s: %w", o.name, err)
	}
	o.rest = append(o.rest, b...)
	for {
		line, rest, found := bytes.Cut(o.rest, []byte("\n"))
		if !found {
			return len(b), nil
		}
		o.show(line)
		o.rest = rest
	}
}

func (o *output) flush() {
	if len(o.rest) > 0 {
		o.show(o.rest)
	}
}

func (o *output) show(line []byte) {
	if quiet.Match(line) {
		return
	}
	// Errors before logging is set up already begin with the name.
	line = bytes.TrimPrefix(line, []byte(o.name+": "))
	fmt.Fprintf(o.terminal, "%s: %s\n", o.name, line)
}
