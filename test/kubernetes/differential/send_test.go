// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/borough-io/borough/test/kubernetes/differential/sides"
)

// requestTimeout bounds a step. Steps usually take milliseconds.
const requestTimeout = 2 * time.Minute

// answer is the response of a side.
type answer struct {
	Code     int
	Warnings []string
	Body     any // decoded JSON
}

// field returns a field of the body.
func (a *answer) field(name string) any {
	fields, _ := a.Body.(map[string]any)
	return fields[name]
}

// causes returns the causes of a failure.
func (a *answer) causes() []any {
	details, _ := a.field("details").(map[string]any)
	causes, _ := details["causes"].([]any)
	return causes
}

func (a *answer) setCauses(causes []any) {
	if details, ok := a.field("details").(map[string]any); ok && details["causes"] != nil {
		details["causes"] = causes
	}
}

// sender sends requests to a side.
type sender struct {
	side   *sides.Side
	client *http.Client
	// bootstrapRules are the rules that the side gives all users.
	bootstrapRules map[string][]any
	// quotaMarks is the number of calls of awaitQuotas.
	quotaMarks atomic.Int64
}

func newSender(side *sides.Side) (*sender, error) {
	client, err := rest.HTTPClientFor(side.Config)
	if err != nil {
		return nil, fmt.Errorf("make a client of %s: %w", side.Name, err)
	}
	return &sender{side: side, client: client}, nil
}

// visit is the run of a scenario on a side.
type visit struct {
	*sender
	namespace            string
	inOwnGroup           bool
	uid, resourceVersion string // of the last object
	generated            map[string]string
}

func (s *sender) visit(namespace string) *visit {
	return &visit{sender: s, namespace: namespace, generated: map[string]string{}, inOwnGroup: s.side.Group != ""}
}

// do sends the request of a step and returns the unchanged response.
func (v *visit) do(ctx context.Context, s step) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		a, err := v.request(ctx, s)
		if err != nil || s.Until == 0 || a.Code == s.Until {
			return a, err
		}
		select {
		case <-ctx.Done():
			return a, fmt.Errorf("%s: %s: waited for %d: %w", v.side.Name, s.Do, s.Until, ctx.Err())
		case <-tick.C:
		}
	}
}

func (v *visit) request(ctx context.Context, s step) (answer, error) {
	var body io.Reader
	if object := s.object(); object != nil {
		data, err := json.Marshal(v.expand(object, true))
		if err != nil {
			return answer{}, fmt.Errorf("encode a body: %w", err)
		}
		body = bytes.NewReader(data)
	}
	url := v.side.Config.Host + v.expand(s.path(v.side.Prefix), false).(string)
	request, err := http.NewRequestWithContext(ctx, s.method(), url, body)
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("Accept", cmp.Or(s.Accept, "application/json"))
	request.Header.Set("Content-Type", s.contentType())
	request.Header.Set("User-Agent", "differential")
	if s.User != nil {
		v.impersonate(request.Header, s.User)
	}
	response, err := v.client.Do(request)
	if err != nil {
		return answer{}, fmt.Errorf("%s: %s: %w", v.side.Name, s.Do, err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, fmt.Errorf("%s: %s: read the response: %w", v.side.Name, s.Do, err)
	}
	a := answer{Code: response.StatusCode, Warnings: response.Header.Values("Warning")}
	if err := json.Unmarshal(data, &a.Body); err != nil {
		a.Body = string(data)
	}
	v.remember(s, a)
	return a, nil
}

func (v *visit) impersonate(header http.Header, user *identity) {
	expand := func(s string) string { return v.expand(s, false).(string) }
	header.Set(transport.ImpersonateUserHeader, expand(user.Name))
	if user.UID != "" {
		header.Set(transport.ImpersonateUIDHeader, expand(user.UID))
	}
	for _, group := range user.Groups {
		header.Add(transport.ImpersonateGroupHeader, expand(group))
	}
	for key, values := range user.Extra {
		for _, value := range values {
			header.Add(transport.ImpersonateUserExtraHeaderPrefix+key, expand(value))
		}
	}
}

// remember records what later requests refer to, and generated names.
func (v *visit) remember(s step, a answer) {
	metadata := metadataOf(a.Body)
	if uid, ok := metadata["uid"].(string); ok {
		v.uid = uid
	}
	if resourceVersion, ok := metadata["resourceVersion"].(string); ok {
		v.resourceVersion = resourceVersion
	}
	prefix, _ := metadataOf(v.expand(s.Body, false))["generateName"].(string)
	details, _ := a.field("details").(map[string]any)
	for _, name := range []any{metadata["name"], details["name"]} {
		if name, ok := name.(string); ok && prefix != "" && len(name) > generated && strings.HasPrefix(prefix, name[:len(name)-generated]) {
			v.generated[name] = name[:len(name)-generated] + "XXXXX"
		}
	}
}

// generated is the length of the random suffix of a generated name.
const generated = 5

// expand replaces the variables and, in the object itself, the apiVersion by
// that of the side.
func (v *visit) expand(value any, top bool) any {
	switch value := value.(type) {
	case string:
		return strings.NewReplacer("$ns", v.namespace, "$uid", v.uid, "$resourceVersion", v.resourceVersion).Replace(value)
	case []any:
		expanded := make([]any, len(value))
		for i := range value {
			expanded[i] = v.expand(value[i], false)
		}
		return expanded
	case map[string]any:
		expanded := make(map[string]any, len(value))
		for key, item := range value {
			if top && key == "apiVersion" && item == "v1" {
				item = v.side.APIVersion()
			}
			expanded[v.expand(key, false).(string)] = v.expand(item, false)
		}
		return expanded
	}
	return value
}

// metadataOf returns the metadata of an object.
func metadataOf(object any) map[string]any {
	fields, _ := object.(map[string]any)
	metadata, _ := fields["metadata"].(map[string]any)
	return metadata
}
