// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/pkg/certificates/reconcile"
)

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// secretPurpose says in errors what the Secret is for.
const secretPurpose = "serving certificate"

// apiService is what is read from the APIService.
type apiService struct {
	caBundle        []byte
	cas             []*x509.Certificate
	insecure        bool // insecureSkipTLSVerify
	resourceVersion string
}

func (r *Rotator) readAPIService(ctx context.Context) (apiService, error) {
	object, err := r.dynamic.Resource(apiServices).Get(ctx, r.config.APIService, metav1.GetOptions{})
	if err != nil {
		return apiService{}, fmt.Errorf("read the APIService: %w", err)
	}
	service := apiService{resourceVersion: object.GetResourceVersion()}
	service.insecure, _, _ = unstructured.NestedBool(object.Object, "spec", "insecureSkipTLSVerify")
	// A caBundle that cannot be read trusts no CA, and is replaced.
	encoded, _, _ := unstructured.NestedString(object.Object, "spec", "caBundle")
	service.caBundle, _ = base64.StdEncoding.DecodeString(encoded)
	service.cas, _ = certutil.ParseCertsPEM(service.caBundle)
	return service, nil
}

// writeAPIService writes the CAs into the APIService. It returns a conflict if the
// APIService has changed since it was read.
func (r *Rotator) writeAPIService(ctx context.Context, service apiService, cas []*x509.Certificate) error {
	caBundle := encode(cas)
	if bytes.Equal(service.caBundle, caBundle) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": service.resourceVersion},
		"spec":     map[string]any{"caBundle": caBundle},
	})
	if err != nil {
		return fmt.Errorf("encode the caBundle: %w", err)
	}
	_, err = r.dynamic.Resource(apiServices).Patch(ctx, r.config.APIService, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "borough-apiserver"})
	if err != nil {
		return fmt.Errorf("write the caBundle of the APIService: %w", err)
	}
	klog.FromContext(ctx).Info("Updated the caBundle of the APIService", "certificates", len(cas))
	return nil
}

// writeSecret writes the data into the Secret, and logs what it ignored in it. It
// returns a conflict if the Secret has changed since it was read.
func (r *Rotator) writeSecret(ctx context.Context, secret *corev1.Secret, data map[string][]byte, ignored error) error {
	written, err := reconcile.WriteSecret(ctx, r.client, secret, data, secretPurpose)
	switch {
	case err != nil || !written:
		return err
	case ignored != nil:
		klog.FromContext(ctx).Info("Replaced the content of the Secret of the serving certificate", "reason", ignored)
	default:
		klog.FromContext(ctx).Info("Updated the Secret of the serving certificate")
	}
	return nil
}
