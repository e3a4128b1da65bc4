// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/boroughtest"
	"github.com/borough-io/borough/cmd/borough-source/app/options"
	"github.com/borough-io/borough/pkg/controller/podsource"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/pkg/source"
	"github.com/borough-io/borough/pkg/source/filesource"
	"github.com/borough-io/borough/test/poll"
)

func TestMain(m *testing.M) { os.Exit(boroughtest.Main(m)) }

const pod = `{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: i}]}}`

var errFailed = errors.New("the source has failed")

// failingReader reads no Pods, and fails when it is closed.
type failingReader chan struct{}

func (r failingReader) Read(context.Context) (source.Content, error) { return source.Content{}, nil }

func (r failingReader) Run(ctx context.Context, _ func(source.Content, error)) error {
	select {
	case <-r:
		return errFailed
	case <-ctx.Done():
		return nil
	}
}

// TestPrune checks that the Namespace of a source is deleted when the process is ended, and
// not when another source fails.
func TestPrune(t *testing.T) {
	server := boroughtest.Shared(t)
	client, err := versioned.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		end    func(stop func(), fails failingReader)
		pruned bool
		err    error
	}{
		"the process is ended": {func(stop func(), _ failingReader) { stop() }, true, nil},
		"another source fails": {func(_ func(), fails failingReader) { close(fails) }, false, errFailed},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "web.yaml"), []byte(pod), 0o644); err != nil {
				t.Fatal(err)
			}
			files := source.Identity{Kind: source.File, Location: dir, Node: "n"}
			other := source.Identity{Kind: source.File, Location: dir + "/other", Node: "n"}
			fails := make(failingReader)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			ended := make(chan error, 1)
			go func() {
				ended <- Run(ctx, &options.Config{Client: server.Config(), Sources: []podsource.Config{
					{Source: files, Reader: filesource.New(dir), Prune: true},
					{Source: other, Reader: fails},
				}})
			}()
			poll.Eventually(t, func() string {
				if _, err := client.TenancyV1().Pods(files.Namespace()).Get(t.Context(), "web-n", metav1.GetOptions{}); err != nil {
					return err.Error()
				}
				return ""
			})
			tc.end(stop, fails)
			if err := <-ended; !errors.Is(err, tc.err) {
				t.Errorf("Run returns %v, want %v", err, tc.err)
			}
			namespace, err := client.TenancyV1().Namespaces().Get(t.Context(), files.Namespace(), metav1.GetOptions{})
			if pruned := apierrors.IsNotFound(err) || namespace.DeletionTimestamp != nil; pruned != tc.pruned {
				t.Errorf("the Namespace is deleted: %t, want %t: %v, %v", pruned, tc.pruned, namespace, err)
			}
		})
	}
}

// waitingReader reads the Pods of a Reader after another Reader was read.
type waitingReader struct {
	source.Reader
	other readReader
}

func (r waitingReader) Read(ctx context.Context) (source.Content, error) {
	select {
	case <-r.other:
		return r.Reader.Read(ctx)
	case <-ctx.Done():
		return source.Content{}, ctx.Err()
	}
}

// readReader reads no Pods, and is closed when it was read.
type readReader chan struct{}

func (r readReader) Read(context.Context) (source.Content, error) {
	close(r)
	return source.Content{}, nil
}

func (readReader) Run(context.Context, func(source.Content, error)) error { return nil }

// TestOnce has a source that waits, and one after it that does not.
func TestOnce(t *testing.T) {
	server := boroughtest.Shared(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "web.yaml"), []byte(pod), 0o644); err != nil {
		t.Fatal(err)
	}
	other := make(readReader)
	err := Run(t.Context(), &options.Config{Client: server.Config(), Once: true, OnceTimeout: 30 * time.Second, Sources: []podsource.Config{
		{Source: source.Identity{Kind: source.File, Location: dir, Node: "n"}, Reader: waitingReader{filesource.New(dir), other}},
		{Source: source.Identity{Kind: source.File, Location: dir + "/other", Node: "n"}, Reader: other},
	}})
	if err != nil {
		t.Error(err)
	}
}
