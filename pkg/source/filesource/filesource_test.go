// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package filesource

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/borough-io/borough/pkg/source"
)

const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {}\n"

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// describe returns the files with the names of their Pods, or their errors.
func describe(content source.Content, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(content.Files)) {
		m := content.Files[name]
		text := name + "="
		for _, pod := range m.Pods {
			text += pod.GetName() + ","
		}
		if m.Err != nil {
			text += "error: " + m.Err.Error()
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

func TestReadDirectory(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(dir string) error
		want    string
	}{
		"nothing":         {func(string) error { return nil }, ""},
		"not readable":    {func(dir string) error { return os.Symlink("/proc/self/mem", dir+"/b.yaml") }, "a.yaml=a, b.yaml=error: "},
		"a subdirectory":  {func(dir string) error { return os.Mkdir(dir+"/b.yaml", 0o755) }, "a.yaml=a,"},
		"other names":     {func(dir string) error { return os.WriteFile(dir+"/b.yaml~", []byte("x"), 0o644) }, "a.yaml=a,"},
		"hidden":          {func(dir string) error { return os.WriteFile(dir+"/.b.yaml", []byte("x"), 0o644) }, "a.yaml=a,"},
		"a FIFO":          {func(dir string) error { return syscall.Mkfifo(dir+"/b.yaml", 0o644) }, "a.yaml=a, b.yaml=error: is not a regular file"},
		"a loop":          {func(dir string) error { return os.Symlink("b.yaml", dir+"/b.yaml") }, "a.yaml=a, b.yaml=error: too many levels of symbolic links"},
		"a dangling link": {func(dir string) error { return os.Symlink("c", dir+"/b.yaml") }, "a.yaml=a, b.yaml=error: no such file or directory"},
		"a link":          {func(dir string) error { return os.Symlink("a.yaml", dir+"/b.yaml") }, "a.yaml=a, b.yaml=a,"},
		"empty":           {func(dir string) error { return os.WriteFile(dir+"/b.yml", nil, 0o644) }, "a.yaml=a, b.yml=error: is empty; to have no Pods, remove it, or write a PodList without items"},
		"broken":          {func(dir string) error { return os.WriteFile(dir+"/b.json", []byte("{"), 0o644) }, "a.yaml=a, b.json=error: document 1: "},
		"too large": {func(dir string) error {
			return os.WriteFile(dir+"/b.yaml", bytes.Repeat([]byte("#\n"), source.MaxBytes/2), 0o644)
		}, "a.yaml=a, b.yaml=error: the files of the source are larger than 10485760 bytes together"},
		"large": {func(dir string) error {
			return os.WriteFile(dir+"/b.yaml", bytes.Repeat([]byte("#\n"), source.MaxBytes/4), 0o644)
		}, "a.yaml=a, b.yaml="},
		"endless":           {func(dir string) error { return os.Symlink("/dev/zero", dir+"/b.yaml") }, "a.yaml=a, b.yaml=error: is not a regular file"},
		"too many Pods":     {func(dir string) error { return os.WriteFile(dir+"/b.yaml", []byte(podList(source.MaxPods)), 0o644) }, "a.yaml=a, b.yaml=error: document 1: items[999]: there are more than 999 Pods"},
		"too many files":    {func(dir string) error { return writeFiles(dir, source.MaxFiles) }, "error: read the source: DIR: has more than 1000 files"},
		"a link to itself":  {func(dir string) error { return os.Symlink(".", dir+"/b.yaml") }, "a.yaml=a,"},
		"a link to the top": {func(dir string) error { return os.Symlink("/", dir+"/b.yaml") }, "a.yaml=a,"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			want := strings.ReplaceAll(tc.want, "DIR", dir)
			if want != "" {
				write(t, dir+"/a.yaml", fmt.Sprintf(pod, "a"))
			}
			must(t, tc.prepare(dir))
			got := describe(New(dir).Read(t.Context()))
			if got != want && !(strings.HasSuffix(want, ": ") && strings.HasPrefix(got, want)) {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func podList(n int) string {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: PodList\nitems:\n")
	for i := range n {
		fmt.Fprintf(&b, "- {metadata: {name: p%d}, spec: {}}\n", i)
	}
	return b.String()
}

func writeFiles(dir string, n int) error {
	for i := range n {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d.txt", i)), nil, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// TestReadFile reads a file, which can have any name.
func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pods")
	s := New(path)
	if got, want := describe(s.Read(t.Context())), "error: read the source: stat "+path+": no such file or directory"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	write(t, path, fmt.Sprintf(pod, "a"))
	if got := describe(s.Read(t.Context())); got != "=a," {
		t.Errorf("got %s", got)
	}
}
