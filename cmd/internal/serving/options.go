// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"fmt"
	"net"
	"strconv"

	"github.com/spf13/pflag"
)

const addressFlag = "http-bind-address"

// AddFlag adds the flag for the address that health and metrics are served on.
func AddFlag(fs *pflag.FlagSet, address *string) {
	fs.StringVar(address, addressFlag, *address, ""+
		"Address and port on which to serve /healthz, /livez, /readyz and /metrics over plain HTTP. If empty, they are not served.")
}

// Validate checks the value of the flag.
func Validate(address string) error {
	if address == "" {
		return nil
	}
	if err := validateAddress(address); err != nil {
		return fmt.Errorf("--%s: %w", addressFlag, err)
	}
	return nil
}

func validateAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if host != "" && net.ParseIP(host) == nil {
		return fmt.Errorf("%q is not an IP address", host)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("%q is not a port", port)
	}
	return nil
}
