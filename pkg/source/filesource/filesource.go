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
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/borough-io/borough/pkg/source"
	"github.com/borough-io/borough/pkg/source/manifest"
)

// Source is a file or a directory. Which of them, it can change.
type Source struct {
	path string
}

var _ source.Reader = (*Source)(nil)

// New returns the source at an absolute path.
func New(path string) *Source { return &Source{path: path} }

// Read implements source.Reader.
func (s *Source) Read(ctx context.Context) (source.Content, error) {
	info, err := os.Stat(s.path)
	if err != nil {
		return source.Content{}, fmt.Errorf("read the source: %w", err)
	}
	r := reader{bytes: source.MaxBytes, pods: source.MaxPods}
	if !info.IsDir() {
		m := r.read(s.path)
		return source.Content{Files: map[string]source.Manifest{"": m}}, nil
	}
	names, err := list(s.path)
	if err != nil {
		return source.Content{}, fmt.Errorf("read the source: %w", err)
	}
	content := source.Content{Files: map[string]source.Manifest{}}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return source.Content{}, err
		}
		path := filepath.Join(s.path, name)
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			continue
		}
		content.Files[name] = r.read(path)
	}
	return content, nil
}

// list returns the names of the manifests of a directory, in order.
func list(path string) ([]string, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(source.MaxFiles + 1)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if len(entries) > source.MaxFiles {
		return nil, fmt.Errorf("%s: has more than %d files", path, source.MaxFiles)
	}
	var names []string
	for _, entry := range entries {
		if isManifest(entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// isManifest reports whether a name is that of a manifest, as for kubectl apply -f. Others
// are the temporary files and backups of editors, and the links in the volume of a ConfigMap.
func isManifest(name string) bool {
	return !strings.HasPrefix(name, ".") && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name))
}

// reader reads the files of a source within its limits.
type reader struct {
	bytes, pods int
}

func (r *reader) read(path string) source.Manifest {
	data, err := readFile(path, r.bytes)
	if err == nil {
		r.bytes -= len(data)
		var m source.Manifest
		if m.Pods, _, err = manifest.Parse(data, r.pods); err == nil {
			r.pods -= len(m.Pods)
			return m
		}
	}
	return source.Manifest{Err: err}
}

var errChanged = errors.New("changed while it was read")

// readFile returns the content of a regular file.
func readFile(path string, max int) ([]byte, error) {
	// Without O_NONBLOCK the open of a FIFO waits for a writer.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, withoutPath(err)
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return nil, withoutPath(err)
	}
	if !before.Mode().IsRegular() {
		return nil, errors.New("is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(max)+1))
	if err != nil {
		return nil, withoutPath(err)
	}
	if len(data) > max {
		return nil, fmt.Errorf("the files of the source are larger than %d bytes together", source.MaxBytes)
	}
	after, err := f.Stat()
	if err != nil {
		return nil, withoutPath(err)
	}
	if after.Size() != int64(len(data)) || !after.ModTime().Equal(before.ModTime()) {
		return nil, errChanged // a read of the change follows
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
