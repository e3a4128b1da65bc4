// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"github.com/borough-io/borough/test/harness"
)

// A fixture is a directory with the data of a server, and the objects that it returned
// just before it stopped.
type fixture string

// objects are the items of lists, as the server wrote them, by the path of the list.
type objects map[string][]json.RawMessage

// object is what the tests need of each object.
type object struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
}

func decode(t *testing.T, raw []byte) object {
	t.Helper()
	var o object
	if err := json.Unmarshal(raw, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// path returns the path of an object in a list.
func (o object) path(list string) string {
	if o.Metadata.Namespace == "" {
		return list + "/" + o.Metadata.Name
	}
	group, resource := list[:strings.LastIndex(list, "/")], list[strings.LastIndex(list, "/"):]
	return group + "/namespaces/" + o.Metadata.Namespace + resource + "/" + o.Metadata.Name
}

// lists returns the paths of all lists that a server has, except of what is derived from
// other objects.
func lists(t *testing.T, b *harness.Borough) []string {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(b.Config(t, "admin"))
	if err != nil {
		t.Fatal(err)
	}
	_, groups, err := client.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, group := range groups {
		prefix := "/apis/"
		if !strings.Contains(group.GroupVersion, "/") {
			prefix = "/api/"
		}
		for _, resource := range group.APIResources {
			if slices.Contains(resource.Verbs, "list") && resource.Name != "projects" {
				paths = append(paths, prefix+group.GroupVersion+"/"+resource.Name)
			}
		}
	}
	return paths
}

// list returns the items of a list, as the server wrote them.
func list(t *testing.T, http harness.HTTP, path string) []json.RawMessage {
	t.Helper()
	var list struct{ Items []json.RawMessage }
	answer := expect(t, http, "GET", path, nil, 200)
	answer.JSON(t, &list)
	return list.Items
}

// expect sends a request, and fails the test unless it is answered with the code.
func expect(t *testing.T, client harness.HTTP, method, path string, body []byte, code int, headers ...string) harness.Answer {
	t.Helper()
	if method == http.MethodPost || method == http.MethodPut || method == http.MethodDelete {
		headers = append(headers, "Content-Type", "application/json")
	}
	answer := client.Do(t, method, path, body, headers...)
	if answer.Code != code {
		t.Fatalf("%s %s: %s, want %d", method, path, answer, code)
	}
	return answer
}

// write writes a fixture: the objects, and the directory of the embedded etcd of a
// server that has stopped.
func (f fixture) write(etcd string, o objects) error {
	if err := os.MkdirAll(string(f), 0o755); err != nil {
		return err
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // the bytes as the server wrote them
	if err := encoder.Encode(o); err != nil {
		return err
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	err := fs.WalkDir(os.DirFS(etcd), "member", func(path string, entry fs.DirEntry, err error) error {
		// A temporary file is the next one of the log, without content.
		if err != nil || entry.IsDir() || strings.HasSuffix(path, ".tmp") {
			return err
		}
		content, err := os.ReadFile(filepath.Join(etcd, path))
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: 0o600, Size: int64(len(content))}); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	return errors.Join(f.compress("objects.json.gz", text.Bytes()), f.compress("etcd.tar.gz", archive.Bytes()))
}

func (f fixture) compress(name string, content []byte) error {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(string(f), name), out.Bytes(), 0o644)
}

// read writes the data of the fixture to the directory of an embedded etcd, and returns
// the objects.
func (f fixture) read(etcd string) (objects, error) {
	text, err := f.decompress("objects.json.gz")
	if err != nil {
		return nil, err
	}
	o := objects{}
	if err := json.Unmarshal(text, &o); err != nil {
		return nil, err
	}
	archive, err := f.decompress("etcd.tar.gz")
	if err != nil {
		return nil, err
	}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return o, nil
		} else if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		file := filepath.Join(etcd, filepath.FromSlash(header.Name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, content, 0o600)); err != nil {
			return nil, err
		}
	}
}

func (f fixture) decompress(name string) ([]byte, error) {
	file, err := os.Open(filepath.Join(string(f), name))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file.Name(), err)
	}
	return io.ReadAll(r)
}
