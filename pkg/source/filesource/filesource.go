// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package filesource reads Pods from a file, or from the files of a directory, and watches
// them.
package filesource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/borough-io/borough/pkg/source"
	"github.com/borough-io/borough/pkg/source/manifest"
)

const (
	// maxEntries is the number of entries of a directory, also of those that are ignored.
	maxEntries = 10 * source.MaxFiles
	// maxAttempts is how often files that change are read.
	maxAttempts = 10
)

// Source is a file or a directory. Which of them, it can change.
type Source struct {
	path string
	// newWatcher and resyncPeriod are the function and the constant, except in tests.
	newWatcher   func() (*fsnotify.Watcher, error)
	resyncPeriod time.Duration
	// files are those of the last read by name, nil if one of them could not be read.
	files map[string]fs.FileInfo
}

var _ source.Reader = (*Source)(nil)

// New returns the source at an absolute path.
func New(path string) *Source {
	return &Source{path: path, newWatcher: fsnotify.NewWatcher, resyncPeriod: resyncPeriod}
}

var errChanged = errors.New("changed while it was read")

// Read implements source.Reader. It returns what all files had at one moment.
func (s *Source) Read(ctx context.Context) (source.Content, error) {
	for attempt := 1; ; attempt++ {
		content, err := s.read(ctx)
		switch {
		case err == nil:
			return content, nil
		case !errors.Is(err, errChanged) || attempt == maxAttempts:
			return source.Content{}, fmt.Errorf("read the source: %w", err)
		}
		select {
		case <-time.After(settleTime):
		case <-ctx.Done():
			return source.Content{}, ctx.Err()
		}
	}
}

func (s *Source) read(ctx context.Context) (source.Content, error) {
	s.files = nil
	before, err := s.stat()
	if err != nil {
		return source.Content{}, err
	}
	names := slices.Sorted(maps.Keys(before))
	data, errs := map[string][]byte{}, map[string]error{}
	bytesLeft := source.MaxBytes
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return source.Content{}, err
		}
		data[name], errs[name] = readFile(filepath.Join(s.path, name), bytesLeft)
		bytesLeft -= len(data[name])
	}
	// A Pod that has moved to a file that was read before would be in none.
	after, err := s.stat()
	switch {
	case err != nil:
		return source.Content{}, err
	case !maps.EqualFunc(before, after, isSame):
		return source.Content{}, fmt.Errorf("%s: %w", s.path, errChanged)
	}

	content := source.Content{Files: map[string]source.Manifest{}}
	remaining := manifest.NewRemaining()
	for _, name := range names {
		m := source.Manifest{Err: errs[name]}
		if m.Err == nil {
			m.Pods, _, m.Err = manifest.Parse(data[name], remaining)
		}
		// A directory can have been there before, with Pods that the file has, too.
		if name == "" && m.Err != nil {
			return source.Content{}, fmt.Errorf("%s: %w", s.path, m.Err)
		}
		content.Files[name] = m
		if errs[name] != nil {
			before = nil
		}
	}
	s.files = before
	return content, nil
}

// hasChanged reports whether the files are not those of the last read.
func (s *Source) hasChanged() bool {
	files, err := s.stat()
	return err != nil || s.files == nil || !maps.EqualFunc(s.files, files, isSame)
}

// stat returns the files of the source by their name in the directory, "" if the source is a
// file. One that cannot be found, such as the target of a link, is nil.
func (s *Source) stat() (map[string]fs.FileInfo, error) {
	info, err := os.Stat(s.path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return map[string]fs.FileInfo{"": info}, nil
	}
	names, err := list(s.path)
	if err != nil {
		return nil, err
	}
	files := map[string]fs.FileInfo{}
	for _, name := range names {
		info, err := os.Stat(filepath.Join(s.path, name))
		switch {
		case err != nil:
			files[name] = nil
		case !info.IsDir():
			files[name] = info
		}
	}
	return files, nil
}

// isSame reports whether a file is the same and has not changed.
func isSame(before, after fs.FileInfo) bool {
	if before == nil || after == nil {
		return before == after
	}
	return os.SameFile(before, after) && before.Size() == after.Size() && before.ModTime().Equal(after.ModTime())
}

// list returns the names of the manifests of a directory, without subdirectories.
func list(path string) ([]string, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(maxEntries + 1)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if len(entries) > maxEntries {
		return nil, fmt.Errorf("%s: has more than %d entries", path, maxEntries)
	}
	var names []string
	for _, entry := range entries {
		if isManifest(entry.Name()) && !entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	if len(names) > source.MaxFiles {
		return nil, fmt.Errorf("%s: has more than %d files", path, source.MaxFiles)
	}
	return names, nil
}

// isManifest reports whether a name is that of a manifest, as for kubectl apply -f. Others
// are the temporary files and backups of editors, and the links in the volume of a ConfigMap.
func isManifest(name string) bool {
	return !strings.HasPrefix(name, ".") && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name))
}

// readFile returns the content of a regular file.
func readFile(path string, max int) ([]byte, error) {
	// Without O_NONBLOCK the open of a FIFO waits for a writer.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, withoutPath(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, withoutPath(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(max)+1))
	if err != nil {
		return nil, withoutPath(err)
	}
	if len(data) > max {
		return nil, fmt.Errorf("the files of the source are larger than %d bytes together", source.MaxBytes)
	}
	return data, nil
}

// withoutPath returns the cause of an error of a file, which is shown with its name.
func withoutPath(err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}
