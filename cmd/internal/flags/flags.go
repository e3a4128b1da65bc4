// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package flags parses and checks values of flags that several commands have.
package flags

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	componentconfig "k8s.io/component-base/config"
)

// NamespacedName parses the value NAMESPACE/NAME of a flag.
func NamespacedName(flag, value string) (types.NamespacedName, error) {
	namespace, name, ok := strings.Cut(value, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}, fmt.Errorf("--%s must be NAMESPACE/NAME, not %q", flag, value)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// minCertLifetime is the shortest lifetime of a certificate that leaves time to
// distribute the next one.
const minCertLifetime = 30 * time.Second

// CheckCertLifetime returns an error if the value of a flag for the lifetime of
// certificates is too short.
func CheckCertLifetime(flag string, value time.Duration) error {
	if value < minCertLifetime {
		return fmt.Errorf("--%s must be at least %s, not %s", flag, minCertLifetime, value)
	}
	return nil
}

// NewLeaderElection returns the defaults of a leader election, whose times are those of
// Kubernetes.
func NewLeaderElection() componentconfig.LeaderElectionConfiguration {
	return componentconfig.LeaderElectionConfiguration{
		LeaderElect:   true,
		LeaseDuration: metav1.Duration{Duration: 15 * time.Second},
		RenewDeadline: metav1.Duration{Duration: 10 * time.Second},
		RetryPeriod:   metav1.Duration{Duration: 2 * time.Second},
	}
}

// CheckLeaderElection returns the invalid values of the flags for the times of a leader
// election.
func CheckLeaderElection(le componentconfig.LeaderElectionConfiguration) (errs []error) {
	if le.RetryPeriod.Duration <= 0 {
		errs = append(errs, fmt.Errorf("--leader-elect-retry-period: must be more than 0, not %s", le.RetryPeriod.Duration))
	}
	// The library adds up to 20% jitter to the retry period.
	if le.RenewDeadline.Duration <= le.RetryPeriod.Duration+le.RetryPeriod.Duration/5 {
		errs = append(errs, fmt.Errorf("--leader-elect-renew-deadline: must be more than 1.2 times --leader-elect-retry-period, not %s", le.RenewDeadline.Duration))
	}
	// A Lease has whole seconds.
	if le.LeaseDuration.Duration.Truncate(time.Second) <= le.RenewDeadline.Duration {
		errs = append(errs, fmt.Errorf("--leader-elect-lease-duration: must be more than --leader-elect-renew-deadline in whole seconds, not %s", le.LeaseDuration.Duration))
	}
	return errs
}
