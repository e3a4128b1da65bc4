// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://192.0.2.1"}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
`

// optionsOf returns options that have read the kubeconfig.
func optionsOf(t *testing.T, file string) *Options {
	t.Helper()
	o := &Options{Kubeconfig: file, QPS: -1}
	if _, err := o.Config("test"); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestAwaitChange changes a kubeconfig in the ways in which files are changed, and in those
// that leave it as it is.
func TestAwaitChange(t *testing.T) {
	write := func(t *testing.T, file, content string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	replace := func(t *testing.T, file, content string) {
		t.Helper()
		write(t, file+".new", content)
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	for name, change := range map[string]func(t *testing.T, file, content string){
		"written":  write,
		"replaced": replace,
		"removed and created": func(t *testing.T, file, content string) {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			write(t, file, content)
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "kubeconfig")
			write(t, file, kubeconfig)
			o := optionsOf(t, file)
			changed := make(chan error, 1)
			go func() { changed <- o.AwaitChange(t.Context()) }()
			change(t, file, kubeconfig) // the same content
			write(t, filepath.Join(filepath.Dir(file), "other"), "")
			select {
			case err := <-changed:
				t.Fatalf("ended without a change: %v", err)
			default:
			}
			change(t, file, kubeconfig+"# renewed\n")
			if err := <-changed; err == nil || !strings.HasPrefix(err.Error(), "--kubeconfig="+file+" has changed") {
				t.Errorf("got %v, want an error with the flag", err)
			}
		})
	}
	t.Run("in another directory", func(t *testing.T) {
		dir := t.TempDir()
		file := filepath.Join(dir, "target", "kubeconfig")
		if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, file, kubeconfig)
		link := filepath.Join(dir, "kubeconfig")
		if err := os.Symlink(file, link); err != nil {
			t.Fatal(err)
		}
		o := optionsOf(t, link)
		o.file.resyncPeriod = time.Millisecond
		changed := make(chan error, 1)
		go func() { changed <- o.AwaitChange(t.Context()) }()
		write(t, file, kubeconfig+"# renewed\n")
		if err := <-changed; err == nil {
			t.Error("no error")
		}
	})
	t.Run("changed before", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "kubeconfig")
		write(t, file, kubeconfig)
		o := optionsOf(t, file)
		write(t, file, kubeconfig+"# renewed\n")
		if err := o.AwaitChange(t.Context()); err == nil {
			t.Error("no error")
		}
	})
	t.Run("not changed", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "kubeconfig")
		write(t, file, kubeconfig)
		for _, o := range []*Options{{}, optionsOf(t, file)} {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := o.AwaitChange(ctx); err != nil {
				t.Error(err)
			}
		}
	})
}
