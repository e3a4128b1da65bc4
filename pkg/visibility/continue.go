// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"fmt"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/storage"
)

// The continue tokens of a view differ from those of the library by a prefix that no
// name can have, because what a user has begun to list without the right for all of
// them must not be continued with it.
const (
	keyPrefix  = "/"
	viewPrefix = keyPrefix + "view/"
)

func isOfView(token string) bool {
	if token == "" {
		return false
	}
	key, _, err := storage.DecodeContinue(token, keyPrefix)
	return err == nil && strings.HasPrefix(key, viewPrefix)
}

// continueToken is where a list continues.
type continueToken struct {
	name string // the first one
	// revision is 0 or negative if the list is at the one that is reached.
	revision int64
	// rest is the number of Namespaces from there on, or unknown.
	rest int64
	// all is whether the list has all Namespaces.
	all bool
}

const (
	unknown = -1
	// allPrefix is before the number of Namespaces in a list of all of them.
	allPrefix = "all-"
)

func decodeContinue(token string) (continueToken, error) {
	key, revision, err := storage.DecodeContinue(token, keyPrefix)
	if err != nil {
		return continueToken{}, apierrors.NewBadRequest("invalid continue token: " + err.Error())
	}
	rest, ok := strings.CutPrefix(key, viewPrefix)
	if !ok {
		// The library lists all.
		return continueToken{strings.TrimPrefix(key, keyPrefix), revision, unknown, true}, nil
	}
	count, name, ok := strings.Cut(rest, "/")
	if !ok {
		return continueToken{rest, revision, unknown, false}, nil
	}
	count, all := strings.CutPrefix(count, allPrefix)
	n, err := strconv.ParseUint(count, 10, 32)
	if err != nil {
		return continueToken{name, revision, unknown, all}, nil
	}
	return continueToken{name, revision, int64(n), all}, nil
}

func (t continueToken) encode() (string, error) {
	prefix := viewPrefix
	if t.all {
		prefix += allPrefix
	}
	return storage.EncodeContinue(fmt.Sprintf("%s%d/%s", prefix, t.rest, t.name), keyPrefix, t.revision)
}

// newListExpired returns the error for a list at a revision before the history. For one
// that continues, it has a token with which to continue at the current revision.
func newListExpired(token, from string) error {
	if token == "" {
		return apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
	}
	err := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. " +
		"Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted " +
		"between the time the first chunk was returned and now may show up in the list.")
	if next, encodeErr := (continueToken{from, -1, unknown, false}).encode(); encodeErr == nil {
		err.ErrStatus.ListMeta.Continue = next
	}
	return err
}
