// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package filesource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

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
		"endless":       {func(dir string) error { return os.Symlink("/dev/zero", dir+"/b.yaml") }, "a.yaml=a, b.yaml=error: is not a regular file"},
		"too many Pods": {func(dir string) error { return os.WriteFile(dir+"/b.yaml", []byte(podList(source.MaxPods)), 0o644) }, "a.yaml=a, b.yaml=error: document 1: items[999]: the source has more than 1000 Pods"},
		"too many documents": {func(dir string) error {
			return os.WriteFile(dir+"/b.yaml", bytes.Repeat([]byte("---\n# none\n"), source.MaxDocuments), 0o644)
		}, "a.yaml=a, b.yaml=error: the source has more than 20000 documents"},
		"too many files":    {func(dir string) error { return linkFiles(dir, "f%d.yaml", source.MaxFiles) }, "error: read the source: DIR: has more than 1000 files"},
		"ignored files":     {func(dir string) error { return linkFiles(dir, "f%d.txt", source.MaxFiles) }, "a.yaml=a,"},
		"too many ignored":  {func(dir string) error { return linkFiles(dir, "f%d.txt", maxEntries) }, "error: read the source: DIR: has more than 10000 entries"},
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

func linkFiles(dir, format string, n int) error {
	for i := range n {
		if err := os.Symlink("missing", filepath.Join(dir, fmt.Sprintf(format, i))); err != nil {
			return err
		}
	}
	return nil
}

// TestReadFile reads a file, which can have any name. One that cannot be read says nothing
// about the Pods of a directory that was there before.
func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pods")
	s := New(path)
	for _, tc := range []struct{ content, want string }{
		{fmt.Sprintf(pod, "a"), "=a,"},
		{"", "error: read the source: " + path + ": is empty; to have no Pods, remove it, or write a PodList without items"},
		{"x", "error: read the source: " + path + ": document 1: is not an object"},
	} {
		write(t, path, tc.content)
		if got := describe(s.Read(t.Context())); got != tc.want {
			t.Errorf("got  %s\nwant %s", got, tc.want)
		}
	}
	must(t, os.Remove(path))
	if got, want := describe(s.Read(t.Context())), "error: read the source: stat "+path+": no such file or directory"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// duringRead is a context that changes the source before each but the first file of a read.
type duringRead struct {
	context.Context
	calls  *int
	change func()
}

// Err is called before each file.
func (c duringRead) Err() error {
	if *c.calls++; *c.calls%2 == 0 {
		c.change()
	}
	return c.Context.Err()
}

// TestReadWhileChanged changes the files between the reads of the first and the second. What is
// returned was there at one moment.
func TestReadWhileChanged(t *testing.T) {
	for name, tc := range map[string]struct {
		// change changes the source, from a.yaml=a and b.yaml=b, for the n-th time.
		change func(dir string, n int) error
		once   bool
		want   string
	}{
		"nothing": {change: func(string, int) error { return nil }, want: "a.yaml=a, b.yaml=b,"},
		"a Pod moves": {once: true, want: "a.yaml=a,b, b.yaml=", change: func(dir string, _ int) error {
			return errors.Join(
				os.WriteFile(dir+"/a.yaml", []byte(fmt.Sprintf(pod, "a")+"---\n"+fmt.Sprintf(pod, "b")), 0o644),
				os.WriteFile(dir+"/b.yaml", []byte("# none"), 0o644))
		}},
		"a file is replaced": {once: true, want: "a.yaml=c, b.yaml=b,", change: func(dir string, _ int) error {
			info, err := os.Stat(dir + "/a.yaml")
			if err != nil {
				return err
			}
			return errors.Join(
				os.WriteFile(dir+"/.new", []byte(fmt.Sprintf(pod, "c")), 0o644),
				os.Chtimes(dir+"/.new", time.Time{}, info.ModTime()),
				os.Rename(dir+"/.new", dir+"/a.yaml"))
		}},
		"a file is renamed": {once: true, want: "b.yaml=b, c.yaml=a,", change: func(dir string, _ int) error {
			return os.Rename(dir+"/a.yaml", dir+"/c.yaml")
		}},
		"a file becomes the directory": {once: true, want: "=a,", change: func(dir string, _ int) error {
			return errors.Join(os.Rename(dir, dir+".old"), os.Link(dir+".old/a.yaml", dir))
		}},
		"all the time": {want: "error: read the source: DIR: changed while it was read", change: func(dir string, n int) error {
			return os.WriteFile(dir+"/a.yaml", bytes.Repeat([]byte("#"), n), 0o644)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "pods")
				must(t, os.Mkdir(dir, 0o755))
				write(t, dir+"/a.yaml", fmt.Sprintf(pod, "a"))
				write(t, dir+"/b.yaml", fmt.Sprintf(pod, "b"))
				n := 0
				ctx := duringRead{t.Context(), new(int), func() {
					if n++; n == 1 || !tc.once {
						must(t, tc.change(dir, n))
					}
				}}
				want := strings.ReplaceAll(tc.want, "DIR", dir)
				if got := describe(New(dir).Read(ctx)); got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
			})
		})
	}
}
