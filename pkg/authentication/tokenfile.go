// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package authentication authenticates users by bearer tokens: those of a file, and
// JSON web tokens of the issuers in an authentication configuration. The formats of
// the files are those of kube-apiserver.
package authentication

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/apiserver/pkg/authentication/user"
)

// ReadTokenFile returns an authenticator of the tokens in a file.
func ReadTokenFile(path string) (authenticator.Token, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the tokens: %w", err)
	}
	users, err := parseTokens(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return tokenfile.New(users), nil
}

// parseTokens returns the users of tokens in CSV: token, user name, UID and, optional
// and in quotes, groups with commas between them. Unlike the parser of the library it
// names the line of an error, and it does not ignore a token that it cannot use.
func parseTokens(content []byte) (map[string]*user.DefaultInfo, error) {
	reader := csv.NewReader(bytes.NewReader(content))
	reader.FieldsPerRecord = -1
	users, lines := map[string]*user.DefaultInfo{}, map[string]int{}
	for {
		record, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return users, nil
		}
		if err != nil {
			return nil, err // it has the line
		}
		line, _ := reader.FieldPos(0)
		if len(record) < 3 {
			return nil, fmt.Errorf("line %d has %d columns; it needs at least a token, a user name and a UID", line, len(record))
		}
		token := record[0]
		switch first, duplicate := lines[token]; {
		case token == "":
			return nil, fmt.Errorf("line %d has no token", line)
		case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
			return nil, fmt.Errorf("line %d has a token with a space or a character that is not ASCII, such as a byte order mark; clients cannot send it", line)
		case !utf8.ValidString(strings.Join(record, ",")):
			return nil, fmt.Errorf("line %d is not encoded as UTF-8", line)
		case record[1] == "":
			return nil, fmt.Errorf("line %d has no user name", line)
		case duplicate:
			return nil, fmt.Errorf("line %d has the token of line %d", line, first)
		}
		info := &user.DefaultInfo{Name: record[1], UID: record[2]}
		if len(record) > 3 && record[3] != "" {
			info.Groups = strings.Split(record[3], ",")
		}
		users[token], lines[token] = info, line
	}
}
