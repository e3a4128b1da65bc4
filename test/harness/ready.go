// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// StartReady starts a program and returns once a GET of the path, with the client
// configuration, returns 200. It fails at once if the program ends.
func StartReady(ctx context.Context, config *rest.Config, path, program string, args ...string) (*Process, error) {
	process, err := StartProcess(program, args...)
	if err != nil {
		return nil, err
	}
	err = process.Await(ctx, func(ctx context.Context) error { return GetOK(ctx, config, path, nil) })
	if err != nil {
		process.Kill()
		return nil, err
	}
	return process, nil
}

// GetOK returns an error unless a GET of the path, with the client configuration,
// returns 200. It decodes the JSON body unless into is nil.
func GetOK(ctx context.Context, config *rest.Config, path string, into any) error {
	config = rest.CopyConfig(config)
	config.Timeout = 5 * time.Second
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("create a client of %s: %w", config.Host, err)
	}
	defer client.CloseIdleConnections()
	url := config.Host + path
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("read the response of %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", url, response.Status, body)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("decode the response of %s: %w", url, err)
	}
	return nil
}
