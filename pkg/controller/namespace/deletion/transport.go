// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// metadataOnly asks for no more than the metadata of what was deleted: the
// reply to a deletecollection carries every object that it deleted, and nobody
// reads them here. What cannot be had that way comes as it is.
const metadataOnly = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1," +
	"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

// ContentConfig returns a copy of config for the metadata client that is given
// to New. With it a deletecollection carries the UID of the Namespace that it
// is meant for, asks for a small reply, and learns from it what is left; the
// metadata client has no parameters for any of this.
func ContentConfig(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &contentTransport{next} })
	return config
}

type contentTransport struct{ next http.RoundTripper }

func (t *contentTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	collection, ok := req.Context().Value(collectionKey{}).(*collection)
	if !ok {
		return t.next.RoundTrip(req)
	}
	req = req.Clone(req.Context())
	req.Header.Set(v1.NamespaceUIDHeader, string(collection.namespaceUID))
	req.Header.Set("Accept", metadataOnly)
	resp, err := t.next.RoundTrip(req)
	collection.gone, collection.found = false, 0
	if err == nil && resp.StatusCode == http.StatusOK {
		remaining, unsaid := strconv.Atoi(resp.Header.Get(v1.RemainingObjectsHeader))
		deleted, _ := strconv.Atoi(resp.Header.Get(v1.DeletedObjectsHeader)) // which only counts
		collection.gone, collection.found = unsaid == nil && remaining == 0, deleted+remaining
	}
	return resp, err
}

// WrappedRoundTripper lets client-go find the transport underneath, for closing
// its idle connections for example.
func (t *contentTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// collection is what a deletecollection is meant for and what came of it.
type collection struct {
	namespaceUID types.UID
	// gone is true when the server says that nothing is left.
	gone bool
	// found is how many objects there were, as far as the server says.
	found int
}

type collectionKey struct{}

// withCollection marks a deletecollection that is made with the context.
func withCollection(ctx context.Context, c *collection) context.Context {
	return context.WithValue(ctx, collectionKey{}, c)
}
