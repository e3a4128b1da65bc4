// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/borough-io/borough/test/poll"
)

// startTimeout is how long a process may take to become ready. It usually takes a
// second, but longer on a busy machine.
const startTimeout = 3 * time.Minute

// stopTimeout is how long a process may take to end after SIGTERM. It usually
// takes far less than a second, or one to two with the race detector. It is less than the
// time that a server gives a request, because a stop must not wait for watches.
const stopTimeout = 50 * time.Second

// waitDelay is how long the output of a process that has ended may take to be read.
const waitDelay = 20 * time.Second

// Process is a program that has been started.
type Process struct {
	Name string

	cmd    *exec.Cmd
	output buffer
	done   chan struct{} // closed once err is the result of Wait
	err    error
}

// StartProcess starts a program. On Linux it is killed if the tests end without
// stopping it.
func StartProcess(path string, args ...string) (*Process, error) {
	p := &Process{Name: filepath.Base(path), cmd: exec.Command(path, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	p.cmd.SysProcAttr = attributes()
	p.cmd.WaitDelay = waitDelay
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.Name, err)
	}
	go func() {
		defer close(p.done)
		p.err = p.cmd.Wait()
	}()
	return p, nil
}

// StartForTest starts a program. When the test ends, it is stopped, and the test fails if it
// does not end cleanly.
func StartForTest(t testing.TB, path string, args ...string) *Process {
	t.Helper()
	p, err := StartProcess(path, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.StopRunning(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(p.Tail(60))
		}
	})
	return p
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// ExitCode returns the exit code of a process that has ended, -1 if a signal
// ended it.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// PID returns the process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Output returns all that the process has written so far.
func (p *Process) Output() string { return p.output.String() }

// Tail returns the last lines that the process has written.
func (p *Process) Tail(lines int) string {
	all := strings.Split(strings.TrimRight(p.Output(), "\n"), "\n")
	if len(all) > lines {
		all = append([]string{"..."}, all[len(all)-lines:]...)
	}
	return p.Name + " wrote:\n\t" + strings.Join(all, "\n\t")
}

// Kill ends the process at once, like a crash.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // fails only when it has ended
	<-p.done
}

// Stop sends SIGTERM and waits until the process has ended. It returns an error
// if the process did not end in time, its exit code is not 0, or it had a data
// race or panicked.
func (p *Process) Stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails only when it has ended
	select {
	case <-p.done:
	case <-time.After(stopTimeout):
		// On SIGQUIT, a Go program prints the stacks of its goroutines.
		before := len(p.Output())
		_ = p.cmd.Process.Signal(syscall.SIGQUIT)
		<-p.done
		return fmt.Errorf("%s did not end within %s of SIGTERM:\n%s", p.Name, stopTimeout, p.Output()[before:])
	}
	err := p.err
	if err != nil {
		err = fmt.Errorf("%s did not end cleanly: %w\n%s", p.Name, err, p.Tail(30))
	}
	return errors.Join(err, p.Flaws())
}

// StopRunning stops the process, also if it is paused. A process that has ended is
// only checked for Flaws; nil is no process.
func (p *Process) StopRunning() error {
	if p == nil {
		return nil
	}
	select {
	case <-p.done: // the test ended it
		return p.Flaws()
	default:
		_ = p.Resume() // a process that is paused does not handle the signal
		return p.Stop()
	}
}

// Flaws returns an error if the process has had a data race or has panicked, also
// if it recovered.
func (p *Process) Flaws() error {
	output := p.Output()
	for _, flaw := range []string{"WARNING: DATA RACE", "Observed a panic", "\npanic: "} {
		if at := strings.Index(output, flaw); at >= 0 {
			return fmt.Errorf("%s: %s", p.Name, output[at:min(len(output), at+6000)])
		}
	}
	return nil
}

// Await calls ready until it returns nil. It returns an error when the process ends
// or is not ready within startTimeout.
func (p *Process) Await(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-p.done:
			cancel(fmt.Errorf("it ended: %v", p.err))
		case <-ctx.Done():
		}
	}()
	if err := poll.Until(ctx, startTimeout, ready); err != nil {
		return fmt.Errorf("%s is not ready: %w\n%s", p.Name, err, p.Tail(30))
	}
	return nil
}

// buffer is a bytes.Buffer that is safe for concurrent use.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(data)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
