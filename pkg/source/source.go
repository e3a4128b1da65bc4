// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package source defines sources of Pods outside of the API, files and URLs: what they are
// called, what their Namespace and their Pods are called, and what they contain. All names
// are functions of the node and the location alone.
package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Kind is the kind of a source. The values are those of the kubelet's annotation
// kubernetes.io/config.source.
type Kind string

const (
	// File is a file or a directory.
	File Kind = "file"
	// HTTP is an HTTPS URL.
	HTTP Kind = "http"
)

const (
	// MaxBytes is the size of what is read of a source, in bytes.
	MaxBytes = 10 << 20
	// MaxFiles is the number of files of a directory.
	MaxFiles = 1000
	// MaxPods is the number of Pods of a source.
	MaxPods = 1000
	// MaxDocuments is the number of documents of a source, also of those without a Pod. Each
	// takes more than ten microseconds, also if it is only a separator.
	MaxDocuments = 20 * MaxPods
)

// Identity identifies a source.
type Identity struct {
	Kind Kind
	// Location is an absolute path or a URL.
	Location string
	// Node is the name of the node that the Pods are assigned to.
	Node string
}

// Parse returns the identity of a source on a node, from the path of a file or directory,
// or an HTTPS URL. A path is relative to the working directory.
func Parse(from, node string) (Identity, error) {
	if from == "" {
		return Identity{}, errors.New("a source must not be empty")
	}
	if strings.Contains(from, "://") {
		if err := validateURL(from); err != nil {
			return Identity{}, err
		}
		return Identity{Kind: HTTP, Location: from, Node: node}, nil
	}
	path, err := filepath.Abs(from)
	if err != nil {
		return Identity{}, fmt.Errorf("find the path of %s: %w", from, err)
	}
	return Identity{Kind: File, Location: path, Node: node}, nil
}

func validateURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return errors.New("the URL of a source is invalid") // the error has the text, and that a password
	case u.User != nil:
		return errors.New("the URL of a source must not have a user or a password; use a token or a client certificate")
	case u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("%s: the URL of a source must begin with https:// and a host", u.Redacted())
	case u.Fragment != "":
		return fmt.Errorf("%s: the URL of a source must not have a fragment", u.Redacted())
	}
	return nil
}

// ID identifies the source among those of all nodes. It is the value of a label.
func (i Identity) ID() string { return i.hash() }

// hash returns 128 bits of a hash of the identity and further values, in hexadecimal. What
// is hashed must never change: the Namespaces, names and UIDs of all sources depend on it.
func (i Identity) hash(values ...string) string {
	h := sha256.New()
	for _, value := range append([]string{"source", string(i.Kind), i.Node, i.Location}, values...) {
		// With the length, values cannot run into each other.
		fmt.Fprintf(h, "%d:%s", len(value), value)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Namespace returns the name of the Namespace of the source.
func (i Identity) Namespace() string { return string(i.Kind) + "-" + i.ID() }

// podName returns the name in the API of a Pod of the source.
func (i Identity) podName(name string) (string, error) {
	full := name + "-" + i.Node
	if reasons := validation.IsDNS1123Subdomain(full); len(reasons) > 0 {
		return "", fmt.Errorf("metadata.name: the name in the API, NAME-NODE, is invalid: %s", strings.Join(reasons, "; "))
	}
	return full, nil
}

// UID returns the source UID of a Pod of the source. It depends on its name and not on its
// content, and has the form of a UUID of version 8 (RFC 9562).
func (i Identity) UID(name string) types.UID {
	h := []byte(i.hash("pod", name))
	h[12] = '8'
	h[16] = "89ab"[h[16]&3]
	return types.UID(fmt.Sprintf("%s-%s-%s-%s-%s", h[:8], h[8:12], h[12:16], h[16:20], h[20:]))
}

// String returns the location without what may be a secret: a query.
func (i Identity) String() string {
	if path, _, found := strings.Cut(i.Location, "?"); i.Kind == HTTP && found {
		return path + "?..."
	}
	return i.Location
}

// Content is what was read of a source.
type Content struct {
	// Files are the files by their name in a directory. The content of a source that is
	// not a directory has the name "".
	Files map[string]Manifest
}

// Manifest is what was read of a file.
type Manifest struct {
	// Pods are the Pods, with names that differ. It is nil if Err is not.
	Pods []*unstructured.Unstructured
	// Err is why the file could not be read. The Pods that it had remain.
	Err error
}

// A Reader reads a source.
type Reader interface {
	// Read returns what the source contains. An error says that nothing could be read: the
	// Pods of the source remain.
	Read(ctx context.Context) (Content, error)
	// Run calls handle with what Read returns, first and after each change, until the
	// context ends. It returns an error if it cannot notice changes.
	Run(ctx context.Context, handle func(Content, error)) error
}
