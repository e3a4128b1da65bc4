// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	arv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// webhook is an admission webhook that records its requests.
type webhook struct {
	server *httptest.Server
	answer func(context.Context, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse

	mu       sync.Mutex
	requests []*admissionv1.AdmissionRequest
}

// newWebhook serves a webhook until the test ends. The context of an answer
// ends with the request.
func newWebhook(t *testing.T, answer func(context.Context, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse) *webhook {
	w := &webhook{answer: answer}
	w.server = httptest.NewTLSServer(w)
	t.Cleanup(w.server.Close)
	return w
}

func (w *webhook) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(writer, "not an AdmissionReview with a request", http.StatusBadRequest)
		return
	}
	w.mu.Lock()
	w.requests = append(w.requests, review.Request)
	w.mu.Unlock()
	review.Response = w.answer(request.Context(), review.Request)
	review.Response.UID, review.Request = review.Request.UID, nil
	_ = json.NewEncoder(writer).Encode(review) // fails only if the client has disconnected
}

// clientConfig returns the configuration with which an API server reaches the
// webhook.
func (w *webhook) clientConfig() arv1.WebhookClientConfig {
	return arv1.WebhookClientConfig{
		URL:      new(w.server.URL),
		CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.server.Certificate().Raw}),
	}
}

// seen returns the matching requests in the order of their arrival.
func (w *webhook) seen(match func(*admissionv1.AdmissionRequest) bool) []*admissionv1.AdmissionRequest {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.requests), func(r *admissionv1.AdmissionRequest) bool { return !match(r) })
}

// webhookTimeout is the longest that a webhook can have, in seconds.
const webhookTimeout int32 = 30

// registerValidating registers a webhook in the cluster for all operations on
// our resources in Namespaces with the label team. The test removes it when it
// ends, as does the returned function.
func registerValidating(t *testing.T, w *webhook, team string, resources []string, modify ...func(*arv1.ValidatingWebhook)) (remove func()) {
	t.Helper()
	hook := arv1.ValidatingWebhook{
		Name:                    "validating." + team + ".example.com",
		ClientConfig:            w.clientConfig(),
		Rules:                   ourRules(arv1.OperationAll, resources),
		NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"team": team}},
		SideEffects:             new(arv1.SideEffectClassNone),
		AdmissionReviewVersions: []string{"v1"},
		TimeoutSeconds:          new(webhookTimeout),
	}
	for _, m := range modify {
		m(&hook)
	}
	client := cluster.Client(t).AdmissionregistrationV1().ValidatingWebhookConfigurations()
	meta := metav1.ObjectMeta{Name: newName(team)}
	_, err := client.Create(t.Context(), &arv1.ValidatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []arv1.ValidatingWebhook{hook}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("register a webhook: %v", err)
	}
	remove = func() {
		if err := client.Delete(context.Background(), meta.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("delete a webhook: %v", err)
		}
	}
	t.Cleanup(remove)
	return remove
}

// registerMutating is registerValidating for a webhook that mutates created
// objects.
func registerMutating(t *testing.T, w *webhook, team string, resources []string) {
	t.Helper()
	client := cluster.Client(t).AdmissionregistrationV1().MutatingWebhookConfigurations()
	configuration := &arv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: newName(team)},
		Webhooks: []arv1.MutatingWebhook{{
			Name:                    "mutating." + team + ".example.com",
			ClientConfig:            w.clientConfig(),
			Rules:                   ourRules(arv1.Create, resources),
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"team": team}},
			SideEffects:             new(arv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
			TimeoutSeconds:          new(webhookTimeout),
		}},
	}
	if _, err := client.Create(t.Context(), configuration, metav1.CreateOptions{}); err != nil {
		t.Fatalf("register a webhook: %v", err)
	}
	t.Cleanup(func() {
		if err := client.Delete(context.Background(), configuration.Name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete a webhook: %v", err)
		}
	})
}

func ourRules(operation arv1.OperationType, resources []string) []arv1.RuleWithOperations {
	return []arv1.RuleWithOperations{{
		Operations: []arv1.OperationType{operation},
		Rule:       arv1.Rule{APIGroups: []string{v1.GroupName}, APIVersions: []string{"v1"}, Resources: resources},
	}}
}

// objectMeta returns the metadata of the request's object, or of the old object
// if there is no new one.
func objectMeta(request *admissionv1.AdmissionRequest) metav1.PartialObjectMetadata {
	raw := request.Object.Raw
	if len(raw) == 0 {
		raw = request.OldObject.Raw
	}
	var object metav1.PartialObjectMetadata
	_ = json.Unmarshal(raw, &object) // empty if it can't be decoded
	return object
}

// denyMarked denies objects with the label deny.
func denyMarked(_ context.Context, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	if _, deny := objectMeta(request).Labels["deny"]; deny {
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: "marked with deny", Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden}}
	}
	return &admissionv1.AdmissionResponse{Allowed: true}
}

// addLabel adds the label webhook.
func addLabel(_ context.Context, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	patch := `[{"op":"add","path":"/metadata/labels","value":{"webhook":"was-here"}}]`
	if len(objectMeta(request).Labels) > 0 {
		patch = `[{"op":"add","path":"/metadata/labels/webhook","value":"was-here"}]`
	}
	return &admissionv1.AdmissionResponse{Allowed: true, Patch: []byte(patch), PatchType: new(admissionv1.PatchTypeJSONPatch)}
}
