// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package filesource

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/borough-io/borough/pkg/source"
	"github.com/borough-io/borough/test/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// run runs the source until the test ends, and calls handled, if there is one, after each read.
// expect waits until it reads what is expected.
func run(t *testing.T, s *Source, handled ...func(read string)) (expect func(want string)) {
	t.Helper()
	read := make(chan string, 1000)
	ended := make(chan error, 1)
	ctx := t.Context()
	go func() {
		ended <- s.Run(ctx, func(content source.Content, err error) {
			text := describe(content, err)
			for _, f := range handled {
				f(text)
			}
			read <- text
		})
	}()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return func(want string) {
		t.Helper()
		var last string
		for last != want {
			select {
			case last = <-read:
			case err := <-ended:
				ended <- err
				t.Fatalf("ended with %v; last read %s, want %s", err, last, want)
			case <-t.Context().Done():
				t.Fatalf("last read %s, want %s", last, want)
			}
		}
	}
}

func TestWatchDirectory(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "a", "b")
	expect := run(t, New(dir))
	missing := "error: read the source: stat " + dir + ": no such file or directory"
	expect(missing)
	must(t, os.MkdirAll(dir, 0o755))
	expect("")
	write(t, dir+"/a.yaml", fmt.Sprintf(pod, "a"))
	expect("a.yaml=a,")
	write(t, dir+"/a.yaml", fmt.Sprintf(pod, "b")) // in place
	expect("a.yaml=b,")
	write(t, dir+"/.new", fmt.Sprintf(pod, "c"))
	must(t, os.Rename(dir+"/.new", dir+"/a.yaml")) // as editors do
	expect("a.yaml=c,")
	must(t, os.Chmod(dir+"/a.yaml", 0o600)) // is read again, and is the same
	must(t, os.Remove(dir+"/a.yaml"))
	expect("")
	must(t, os.Rename(top+"/a", top+"/z"))
	expect(missing)
	write(t, top+"/z/b/d.yaml", fmt.Sprintf(pod, "d"))
	must(t, os.Rename(top+"/z", top+"/a"))
	expect("d.yaml=d,")
	must(t, os.RemoveAll(top+"/a"))
	expect(missing)
	must(t, os.Mkdir(top+"/a", 0o755))
	write(t, dir, fmt.Sprintf(pod, "e")) // a file instead of the directory
	expect("=e,")
}

// TestWatchConfigMap replaces files as the kubelet does in the volume of a ConfigMap.
func TestWatchConfigMap(t *testing.T) {
	dir := t.TempDir()
	publish := func(version, content string) {
		must(t, os.Mkdir(filepath.Join(dir, version), 0o755))
		write(t, filepath.Join(dir, version, "pods.yaml"), content)
		must(t, os.Symlink(version, filepath.Join(dir, "..data_tmp")))
		must(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	publish("..1", fmt.Sprintf(pod, "a"))
	must(t, os.Symlink("..data/pods.yaml", filepath.Join(dir, "pods.yaml")))

	directory, file := run(t, New(dir)), run(t, New(filepath.Join(dir, "pods.yaml")))
	directory("pods.yaml=a,")
	file("=a,")
	publish("..2", fmt.Sprintf(pod, "b"))
	directory("pods.yaml=b,")
	file("=b,")
	must(t, os.RemoveAll(filepath.Join(dir, "..1")))
	publish("..3", fmt.Sprintf(pod, "c"))
	directory("pods.yaml=c,")
	file("=c,")
}

// TestWatchLinks changes what links lead to: the directory, and a file elsewhere.
func TestWatchLinks(t *testing.T) {
	top := t.TempDir()
	for _, dir := range []string{"v1", "v2", "else"} {
		must(t, os.Mkdir(filepath.Join(top, dir), 0o755))
	}
	write(t, top+"/else/file", fmt.Sprintf(pod, "a"))
	must(t, os.Symlink(top+"/else/file", top+"/v1/a.yaml"))
	must(t, os.Symlink("v1", top+"/current"))
	must(t, os.Symlink("current/../current", top+"/pods"))
	expect := run(t, New(top+"/pods"))
	expect("a.yaml=a,")
	write(t, top+"/else/file", fmt.Sprintf(pod, "b"))
	expect("a.yaml=b,")
	write(t, top+"/v2/b.yaml", fmt.Sprintf(pod, "c"))
	must(t, os.Symlink("v2", top+"/next"))
	must(t, os.Rename(top+"/next", top+"/current"))
	expect("b.yaml=c,")
	must(t, os.Remove(top+"/v2/b.yaml"))
	must(t, os.Symlink("b.yaml", top+"/v2/b.yaml"))
	expect("b.yaml=error: too many levels of symbolic links")
}

// TestWatchUnreachable watches paths that cannot exist, until what is in the way is gone.
func TestWatchUnreachable(t *testing.T) {
	long := strings.Repeat("x", 300)
	for name, tc := range map[string]struct {
		link string // what a file of the directory leads to
		want string
	}{
		"through a file": {"a.yaml/x/y", "not a directory"},
		"a long name":    {long + "/x", "file name too long"},
		"through a loop": {"loop/x/y", "too many levels of symbolic links"},
		"nothing":        {"x/y/z", "no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir+"/a.yaml", fmt.Sprintf(pod, "a"))
			must(t, os.Symlink("loop", dir+"/loop"))
			must(t, os.Symlink(tc.link, dir+"/b.yaml"))
			expect := run(t, New(dir))
			expect("a.yaml=a, b.yaml=error: " + tc.want)
			must(t, os.Remove(dir+"/b.yaml"))
			expect("a.yaml=a,")
		})
	}

	top := t.TempDir()
	write(t, top+"/mnt", "")
	dir := top + "/mnt/a/pods"
	expect := run(t, New(dir))
	expect("error: read the source: stat " + dir + ": not a directory")
	must(t, os.Remove(top+"/mnt"))
	must(t, os.MkdirAll(dir, 0o755))
	expect("")
}

// TestWatchMovedAndRemoved moves and removes the directory at once. The watcher then fails to
// remove its watch of the directory, which is gone.
func TestWatchMovedAndRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pods")
	must(t, os.Mkdir(dir, 0o755))
	// The events wait until the read was handled.
	expect := run(t, New(dir), func(read string) {
		if read == "" {
			must(t, errors.Join(os.Rename(dir, dir+".old"), os.Remove(dir+".old")))
		}
	})
	expect("error: read the source: stat " + dir + ": no such file or directory")
	write(t, dir, fmt.Sprintf(pod, "a"))
	expect("=a,")
}

// TestResync changes a file without an event. It is read when its time has come, or when the
// watcher says that it has lost events.
func TestResync(t *testing.T) {
	for name, tc := range map[string]struct {
		watcherErr   error // instead of a watcher
		resyncPeriod time.Duration
		lost         error // is sent after the change
	}{
		"no event":        {resyncPeriod: time.Millisecond},
		"no watcher":      {resyncPeriod: time.Millisecond, watcherErr: syscall.EMFILE},
		"events are lost": {resyncPeriod: time.Hour, lost: fsnotify.ErrEventOverflow},
	} {
		t.Run(name, func(t *testing.T) {
			dir, other := t.TempDir(), t.TempDir()
			write(t, other+"/a", fmt.Sprintf(pod, "a"))
			must(t, os.Link(other+"/a", dir+"/a.yaml"))
			s := New(dir)
			s.resyncPeriod = tc.resyncPeriod
			errs := make(chan chan error, 1)
			s.newWatcher = func() (*fsnotify.Watcher, error) {
				if tc.watcherErr != nil {
					return nil, tc.watcherErr
				}
				watcher, err := fsnotify.NewWatcher()
				if err == nil && tc.lost != nil {
					errs <- watcher.Errors
				}
				return watcher, err
			}
			expect := run(t, s)
			expect("a.yaml=a,")
			write(t, other+"/a", fmt.Sprintf(pod, "b"))
			if tc.lost != nil {
				<-errs <- tc.lost
			}
			expect("a.yaml=b,")
		})
	}
}

// TestWatchRoot watches a file in the root directory.
func TestWatchRoot(t *testing.T) {
	f, err := os.CreateTemp("/", "borough-filesource-*")
	if err != nil {
		t.Skipf("cannot write into /: %v", err)
	}
	defer os.Remove(f.Name())
	must(t, f.Close())
	expect := run(t, New(f.Name()))
	expect("error: read the source: " + f.Name() + ": is empty; to have no Pods, remove it, or write a PodList without items")
	write(t, f.Name(), fmt.Sprintf(pod, "a"))
	expect("=a,")
}

// TestWatchWhatAppears creates the directory of the source while it begins to be watched. It
// has to be watched, or to have an event.
func TestWatchWhatAppears(t *testing.T) {
	parent := t.TempDir()
	for i := range 1000 {
		dir := filepath.Join(parent, strconv.Itoa(i))
		watcher, err := fsnotify.NewWatcher()
		if err != nil {
			t.Fatal(err)
		}
		created := make(chan error)
		go func() { created <- os.Mkdir(dir, 0o700) }()
		w, err := New(dir).watch(watcher)
		if err := errors.Join(err, <-created); err != nil {
			t.Fatal(err)
		}
		if w.dir == "" {
			select {
			case <-watcher.Events:
			case <-time.After(time.Minute):
				t.Errorf("round %d: the directory is not watched, and its creation has no event", i)
			}
		}
		if err := watcher.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			return
		}
	}
}
