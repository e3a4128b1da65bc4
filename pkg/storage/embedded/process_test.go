// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"

	"github.com/borough-io/borough/pkg/storage/embedded"
)

// childDir is an environment variable with a directory. If it is set, the test
// binary runs a member in that directory.
const childDir = "BOROUGH_TEST_EMBEDDED_DIR"

// child runs a member that writes one key after another, and prints the revision of
// each, until it is killed.
func child(dir string) int {
	ctx := context.Background()
	server, err := embedded.Start(ctx, embedded.Config{Dir: dir})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	client := server.Client()
	// The server is no longer referenced. That must not release its lock.
	runtime.GC()
	fmt.Println("started")
	for i := 0; ; i++ {
		response, err := client.Put(ctx, fmt.Sprintf("key%03d", i%1000), strings.Repeat("value", 100))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println(response.Header.Revision)
	}
}

// process is a running child.
type process struct {
	*exec.Cmd
	lines  *bufio.Scanner
	last   string // the last line read
	stderr strings.Builder
}

// next reads a line. It returns false when the process has ended.
func (p *process) next() bool {
	ok := p.lines.Scan()
	if ok {
		p.last = p.lines.Text()
	}
	return ok
}

func startChild(t *testing.T, dir string) *process {
	t.Helper()
	p := &process{Cmd: exec.CommandContext(t.Context(), os.Args[0])}
	p.Env = append(os.Environ(), childDir+"="+dir)
	p.Stderr = &p.stderr
	stdout, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewScanner(stdout)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// kill ends the process with SIGKILL. It returns the last line that it wrote.
func (p *process) kill(t *testing.T) string {
	t.Helper()
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for p.next() { //nolint:revive // until the end
	}
	_ = p.Wait()
	return p.last
}

func TestStartAfterKill(t *testing.T) {
	dir := t.TempDir()
	acknowledged := 0
	for round := range 8 {
		p := startChild(t, dir)
		for n := rand.IntN(400) + 2; n > 0; n-- {
			if !p.next() {
				_ = p.Wait()
				t.Fatalf("round %d: the member has not started or has ended: %s", round, p.stderr.String())
			}
		}
		revision, err := strconv.Atoi(p.kill(t))
		if err != nil {
			t.Fatal(err)
		}
		if revision <= acknowledged {
			t.Fatalf("round %d: at revision %d, after %d had been reached before", round, revision, acknowledged)
		}
		acknowledged = revision
	}
	response, err := start(t, dir).Client().Get(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	if got := int(response.Header.Revision); got < acknowledged {
		t.Errorf("at revision %d, after %d had been acknowledged", got, acknowledged)
	}
}

// TestStartAfterKillDuringFirstStart kills a new member as soon as a file exists.
func TestStartAfterKillDuringFirstStart(t *testing.T) {
	for _, file := range []string{"lock", "member", "member/snap", "member/snap/db", "member/wal.tmp", "member/wal", "member/wal/0000000000000000-0000000000000000.wal"} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			dir := t.TempDir()
			p := startChild(t, dir)
			for {
				if _, err := os.Lstat(filepath.Join(dir, file)); err == nil {
					break
				}
				if _, err := os.Lstat(filepath.Join(dir, "member/wal")); err == nil {
					break // too late for this file
				}
			}
			p.kill(t)
			put(t, start(t, dir).Client(), "key", "value")
		})
	}
}

// TestInUseByProcess shows that a second process fails to start, until the first one
// ends.
func TestInUseByProcess(t *testing.T) {
	dir := t.TempDir()
	p := startChild(t, dir)
	for range 100 { // so that the garbage collector has run
		p.next()
	}
	if _, err := fileutil.TryLockFile(filepath.Join(dir, "lock"), os.O_RDWR, 0o600); !errors.Is(err, fileutil.ErrLocked) {
		t.Errorf("locking: got %v, want %v", err, fileutil.ErrLocked)
	}
	_, err := embedded.Start(t.Context(), embedded.Config{Dir: dir})
	checkError(t, err, dir, "in use by another process")
	p.kill(t)
	start(t, dir)
}

// TestListensNowhere checks that the process has no sockets.
func TestListensNowhere(t *testing.T) {
	start(t, t.TempDir())
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil || len(links) == 0 {
		t.Skip("this system has no /proc")
	}
	for _, link := range links {
		if target, _ := os.Readlink(link); strings.HasPrefix(target, "socket:") {
			t.Errorf("the process has a socket: %s", target)
		}
	}
}
