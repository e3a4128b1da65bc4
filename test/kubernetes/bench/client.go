// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

const (
	jsonType     = "application/json"
	protobufType = "application/vnd.kubernetes.protobuf"
	tableType    = "application/json;as=Table;v=v1;g=meta.k8s.io"
)

// client has a separate HTTP/2 connection with a client certificate. It does
// little with the responses, to leave the CPU to the servers.
type client struct {
	http *http.Client
	host string
	user string // to impersonate, or empty
}

// as returns the client with requests of a user.
func (c *client) as(user string) *client { return &client{http: c.http, host: c.host, user: user} }

// client returns the n-th client of a side.
func (s *side) client(n int) (*client, error) {
	for len(s.clients) <= n {
		config, err := rest.TLSConfigFor(s.config)
		if err != nil {
			return nil, fmt.Errorf("make a client of %s: %w", s.name, err)
		}
		transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
		s.clients = append(s.clients, &client{http: &http.Client{Transport: transport}, host: s.config.Host})
	}
	return s.clients[n], nil
}

// send sends a request and returns the response, whose body the caller closes.
// A status other than 2xx is an error.
func (c *client) send(ctx context.Context, method, path, accept string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.host+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", accept)
	request.Header.Set("Content-Type", jsonType)
	if c.user != "" {
		request.Header.Set("Impersonate-User", c.user)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode/100 != 2 {
		defer response.Body.Close()
		answer, _ := io.ReadAll(io.LimitReader(response.Body, 1000)) // for the error message only
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, response.Status, answer)
	}
	return response, nil
}

// do sends a request and reads the whole response.
func (c *client) do(ctx context.Context, method, path, accept string, body []byte) error {
	response, err := c.send(ctx, method, path, accept, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return fmt.Errorf("%s %s: read the response: %w", method, path, err)
	}
	return nil
}

func (c *client) create(ctx context.Context, path string, body []byte) error {
	return c.do(ctx, http.MethodPost, path, jsonType, body)
}

func (c *client) get(ctx context.Context, path, accept string) error {
	return c.do(ctx, http.MethodGet, path, accept, nil)
}

func (c *client) delete(ctx context.Context, path string) error {
	return c.do(ctx, http.MethodDelete, path, jsonType, nil)
}

// metrics reads the server's metrics and calls seen with each value.
func (c *client) metrics(ctx context.Context, seen func(name, labels string, value float64)) error {
	response, err := c.send(ctx, http.MethodGet, "/metrics", "text/plain", nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		series, text, labelled := strings.Cut(lines.Text(), "} ")
		if !labelled {
			series, text, _ = strings.Cut(lines.Text(), " ")
		}
		name, labels, _ := strings.Cut(series, "{")
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("read the metrics: %w", err)
		}
		seen(name, labels, value)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the metrics: %w", err)
	}
	return nil
}

// watch starts a watch and calls seen with the type of each event and the name
// of its object, until the context ends or seen returns false. The function
// that it returns waits for the end of the watch and returns its error.
func (c *client) watch(ctx context.Context, path string, seen func(event, name string) bool) (func() error, error) {
	now, err := c.resourceVersion(ctx, path)
	if err != nil {
		return nil, err
	}
	response, err := c.watchFrom(ctx, path, now)
	if err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() {
		err := c.follow(ctx, path, now, response, seen)
		if err != nil {
			err = fmt.Errorf("watch %s: %w", path, err)
		}
		done <- err
	}()
	return func() error { return <-done }, nil
}

func (c *client) watchFrom(ctx context.Context, path, resourceVersion string) (*http.Response, error) {
	return c.send(ctx, http.MethodGet, withQuery(path, "watch=1&resourceVersion="+resourceVersion), jsonType, nil)
}

// withQuery adds to the query of a path, which may have one.
func withQuery(path, query string) string {
	if strings.Contains(path, "?") {
		return path + "&" + query
	}
	return path + "?" + query
}

// follow calls seen with the events of a watch from a resourceVersion on, until it
// returns false. It resumes the watch if the server ends it: a server does so if the
// client is slower than the events.
func (c *client) follow(ctx context.Context, path, from string, response *http.Response, seen func(event, name string) bool) error {
	for {
		last, err := readEvents(response, seen)
		if !errors.Is(err, io.EOF) {
			return err
		}
		if last != nil {
			from = field(last, `"resourceVersion":"`)
		}
		if response, err = c.watchFrom(ctx, path, from); err != nil {
			return err
		}
	}
}

// readEvents calls seen with the events of a watch until it returns false. If the server
// ends the watch before, it returns the last event, or nil if there is none, and io.EOF.
func readEvents(response *http.Response, seen func(event, name string) bool) (last []byte, err error) {
	defer response.Body.Close()
	lines := bufio.NewReaderSize(response.Body, 16<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return last, err
		}
		event := field(line, `"type":"`)
		if event == "ERROR" {
			return last, fmt.Errorf("%s", line)
		}
		if !seen(event, field(line, `"metadata":{"name":"`)) {
			return last, nil
		}
		last = line
	}
}

// resourceVersion returns the resourceVersion of a collection.
func (c *client) resourceVersion(ctx context.Context, path string) (string, error) {
	response, err := c.send(ctx, http.MethodGet, withQuery(path, "limit=1"), jsonType, nil)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var list metav1.PartialObjectMetadataList
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return "", fmt.Errorf("list %s: %w", path, err)
	}
	return list.ResourceVersion, nil
}

// field returns the string that follows the key. Decoding each event for each
// watcher would cost more than the server spends on sending it.
func field(line []byte, key string) string {
	_, rest, _ := bytes.Cut(line, []byte(key))
	value, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(value)
}
