// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/borough-io/borough/test/kubernetes/testcluster"
)

// describe returns when, where and with which versions the figures were
// measured, and how much CPU time other programs took. busyBefore is the value
// of machineBusy at the start.
func (b *bench) describe(ctx context.Context, took time.Duration, busyBefore float64) (string, error) {
	etcd, err := etcdVersion(ctx)
	if err != nil {
		return "", err
	}
	busy, err := machineBusy()
	if err != nil {
		return "", err
	}
	spent, err := b.spent()
	if err != nil {
		return "", err
	}
	others := max(busy-busyBefore-spent, 0) / took.Seconds() / float64(runtime.NumCPU())
	return fmt.Sprintf("%s, %s, rounds: %d. Other programs took %.0f%% of the machine's CPU time.\n\n- Machine: %s\n- Versions: %s with etcd %s; %s with etcd %s; %s\n\n",
		time.Now().Format(time.DateOnly), took.Round(time.Second), b.rounds, 100*others, machine(),
		b.versions[0], etcd, b.versions[1], strings.TrimPrefix(moduleVersion("go.etcd.io/etcd/server/v3"), "v"), runtime.Version()), nil
}

// machine returns the cores, memory and kernel of the machine, as far as /proc
// has them.
func machine() string {
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease") // empty if it does not exist
	model := "unknown processor"
	info, _ := os.ReadFile("/proc/cpuinfo")
	if value, ok := procValue(string(info), "model name"); ok {
		model = value
	}
	memory := "unknown"
	info, _ = os.ReadFile("/proc/meminfo")
	if value, ok := procValue(string(info), "MemTotal"); ok {
		var kib int
		if _, err := fmt.Sscanf(value, "%d kB", &kib); err == nil {
			memory = fmt.Sprintf("%.1f GiB", float64(kib)/(1<<20))
		}
	}
	return fmt.Sprintf("%d cores (%s), %s of memory, %s %s, %s", runtime.NumCPU(), model, memory,
		runtime.GOOS, strings.TrimSpace(string(kernel)), runtime.GOARCH)
}

func procValue(text, key string) (string, bool) {
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}

func (s *side) version(ctx context.Context) (string, error) {
	c, err := s.client(0)
	if err != nil {
		return "", err
	}
	response, err := c.send(ctx, http.MethodGet, "/version", jsonType, nil)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var version struct{ GitVersion string }
	if err := json.NewDecoder(response.Body).Decode(&version); err != nil {
		return "", fmt.Errorf("read the version of %s: %w", s.name, err)
	}
	// A standalone server has its own version behind that of Kubernetes.
	if _, own, found := strings.Cut(version.GitVersion, "+borough-"); found {
		return own, nil
	}
	return version.GitVersion, nil
}

// etcdVersion returns the version of the etcd that kube-apiserver uses.
func etcdVersion(ctx context.Context) (string, error) {
	path, err := testcluster.Binary("etcd")
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ask etcd for its version: %w", err)
	}
	version, _ := procValue(string(out), "etcd Version")
	return version, nil
}

// moduleVersion returns the version of a module in this program, which is also
// its version in the product.
func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == path {
				return module.Version
			}
		}
	}
	return "unknown"
}
