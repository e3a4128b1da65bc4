// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"bytes"
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// ReadSecret returns the Secret. purpose says in an error what it is for. None of our
// processes may create a Secret, because it would have to be allowed to create any
// Secret of the namespace.
func ReadSecret(ctx context.Context, client kubernetes.Interface, name types.NamespacedName, purpose string) (*corev1.Secret, error) {
	secret, err := client.CoreV1().Secrets(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("the Secret %s does not exist; apply the manifests of Borough again, which create it", name)
	}
	if err != nil {
		return nil, fmt.Errorf("read the Secret of the %s: %w", purpose, err)
	}
	return secret, nil
}

// WriteSecret replaces the data of a Secret that was read, unless it has that data, and
// reports whether it did. It returns a conflict if the Secret has changed since. purpose
// says in an error what it is for.
func WriteSecret(ctx context.Context, client kubernetes.Interface, secret *corev1.Secret, data map[string][]byte, purpose string) (written bool, err error) {
	if maps.EqualFunc(secret.Data, data, bytes.Equal) {
		return false, nil
	}
	write := secret.DeepCopy()
	write.Data = data
	if _, err := client.CoreV1().Secrets(secret.Namespace).Update(ctx, write, metav1.UpdateOptions{}); err != nil {
		return false, fmt.Errorf("write the Secret of the %s: %w", purpose, err)
	}
	return true, nil
}
