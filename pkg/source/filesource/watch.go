// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package filesource

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/pkg/source"
)

const (
	// settleTime is how long there must be no changes before the files are read. Programs
	// write a file in several steps.
	settleTime = 20 * time.Millisecond
	// maxSettleTime is how long a read is put off if the changes do not end.
	maxSettleTime = time.Second
	// resyncPeriod is how often the source is compared with what was read, without an event,
	// as by the kubelet.
	resyncPeriod = 20 * time.Second
	// maxLinks is the number of symbolic links of a path, as in Linux.
	maxLinks = 40
)

// Run implements source.Reader.
func (s *Source) Run(ctx context.Context, handle func(source.Content, error)) error {
	for ctx.Err() == nil {
		s.runUntilChange(ctx, handle)
	}
	return nil
}

// runUntilChange reads the source, and returns when it may have changed or the context ends. A
// new watcher each time, because directories can be replaced, is simple and cheap.
func (s *Source) runUntilChange(ctx context.Context, handle func(source.Content, error)) {
	logger := klog.FromContext(ctx)
	var events <-chan fsnotify.Event
	var errs <-chan error
	var w *watched
	watcher, watchErr := s.newWatcher()
	if watchErr == nil {
		defer watcher.Close()
		events, errs = watcher.Events, watcher.Errors
		// Before the read, so that no change is missed.
		w, watchErr = s.watch(watcher)
	}
	if watchErr != nil { // a limit of inotify, for example
		logger.Info("Cannot watch the source, will read it periodically", "period", s.resyncPeriod, "err", watchErr)
	}
	content, err := s.Read(ctx)
	if ctx.Err() != nil {
		return
	}
	handle(content, err)

	// A mount over a directory has no event, nor have changes of a network file system.
	resync := time.After(s.resyncPeriod)
	lost := false // events
	var settled <-chan time.Time
	var deadline time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-settled:
			return
		case <-resync:
			if lost || watchErr != nil || s.hasChanged() {
				return
			}
			resync = time.After(s.resyncPeriod)
		case event := <-events:
			// The names of files in / begin with two slashes.
			if !w.has(filepath.Clean(event.Name)) {
				continue
			}
			if settled == nil {
				deadline = time.Now().Add(maxSettleTime)
			}
			settled = time.After(min(settleTime, time.Until(deadline)))
		case err := <-errs:
			logger.Info("Changes of the source may be lost, will read it again", "err", err)
			errs, lost, resync = nil, true, time.After(maxSettleTime)
		}
	}
}

// watched are the paths whose change can change a source.
type watched struct {
	// paths are what the path of the source and the links in it consist of.
	paths sets.Set[string]
	// dir is the directory with the manifests, "" if the source is a file.
	dir string
}

func (w *watched) has(path string) bool {
	return w.paths.Has(path) || w.dir != "" && filepath.Dir(path) == w.dir && isManifest(filepath.Base(path))
}

// watch watches the directories in which a change can change the source: those of each
// element of its path and of the links that it leads through. So the source is noticed when
// it appears, also if its directory does not exist. With an error, it watches only some.
func (s *Source) watch(watcher *fsnotify.Watcher) (*watched, error) {
	added := sets.New[string]()
	for {
		w := s.look()
		before := added.Len()
		// Parents first: the watcher hangs if the first event is that a directory was moved,
		// and it is removed by then.
		for _, dir := range sets.List(w.dirs().Difference(added)) {
			// One that is not there is that of a path of which an element before it changes
			// first.
			switch err := watcher.Add(dir); {
			case err == nil:
				added.Insert(dir)
			case !isMissing(err):
				return w, fmt.Errorf("watch %s: %w", dir, err)
			}
		}
		if added.Len() == before {
			return w, nil
		}
		// Look again: no event says what has appeared before its directory was watched.
	}
}

// look returns the paths as they are.
func (s *Source) look() *watched {
	w := &watched{paths: sets.New[string]()}
	target := w.add(s.path)
	if info, err := os.Stat(target); err == nil && info.IsDir() {
		w.dir = target
		names, err := list(target)
		if err == nil {
			for _, name := range names {
				w.add(filepath.Join(target, name))
			}
		}
	}
	return w
}

// dirs returns the directories that the paths are in.
func (w *watched) dirs() sets.Set[string] {
	dirs := sets.New[string]()
	for path := range w.paths {
		dirs.Insert(filepath.Dir(path))
	}
	if w.dir != "" {
		dirs.Insert(w.dir)
	}
	return dirs
}

// isMissing reports whether a path does not exist, cannot exist or cannot be reached.
func isMissing(err error) bool {
	return slices.ContainsFunc([]error{
		os.ErrNotExist, os.ErrPermission, syscall.ENOTDIR, syscall.ENAMETOOLONG, syscall.ELOOP,
	}, func(target error) bool { return errors.Is(err, target) })
}

// add adds the elements of an absolute path, without symbolic links before the last, and
// returns what it leads to.
func (w *watched) add(path string) (target string) {
	current := string(filepath.Separator)
	rest := split(path)
	for links := 0; len(rest) > 0; {
		element := rest[0]
		rest = rest[1:]
		if element == ".." {
			current = filepath.Dir(current)
			continue
		}
		next := filepath.Join(current, element)
		w.paths.Insert(next)
		link, err := os.Readlink(next)
		if err != nil {
			current = next
			continue
		}
		if links++; links > maxLinks {
			return next
		}
		if filepath.IsAbs(link) {
			current = string(filepath.Separator)
		}
		rest = append(split(link), rest...)
	}
	return current
}

func split(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == filepath.Separator })
}
