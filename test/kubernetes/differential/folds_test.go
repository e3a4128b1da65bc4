// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// foldMessages returns a function that changes the messages of both responses,
// if they are failures.
func foldMessages(change func(string) string) func(*exchange) {
	return func(x *exchange) {
		for _, a := range []*answer{x.kube, x.borough} {
			if message, ok := a.field("message").(string); ok && a.field("kind") == "Status" {
				a.Body.(map[string]any)["message"] = change(message)
			}
			for _, cause := range a.causes() {
				cause := cause.(map[string]any)
				if message, ok := cause["message"].(string); ok {
					cause["message"] = change(message)
				}
			}
		}
	}
}

// goTypes matches Go's names for the types of the API, in the package of the
// internal types or of a version.
var goTypes = regexp.MustCompile(`\b(?:core|tenancy|rbac|v1)\.([A-Z][A-Za-z]*)`)

// groupInKeys matches the group in a key of etcd, which in Kubernetes is only in those
// of custom resources.
var groupInKeys = regexp.MustCompile(`Key: (/registry)?/(?:tenancy\.borough\.io|rbac\.authorization\.k8s\.io)/`)

// foldMetadataAlone replaces the version of managed fields where a response has only the
// metadata of objects.
func foldMetadataAlone(x *exchange) {
	metadata := []any{}
	rows, _ := x.borough.field("rows").([]any)
	for _, row := range rows {
		metadata = append(metadata, row.(map[string]any)["object"])
	}
	if items, ok := x.borough.field("items").([]any); ok && x.borough.field("kind") == "PartialObjectMetadataList" {
		metadata = append(metadata, items...)
	}
	if x.borough.field("kind") == "PartialObjectMetadata" {
		metadata = append(metadata, x.borough.Body)
	}
	for _, object := range metadata {
		managed, _ := metadataOf(object)["managedFields"].([]any)
		for _, entry := range managed {
			if entry := entry.(map[string]any); entry["apiVersion"] == v1.SchemeGroupVersion.String() {
				entry["apiVersion"] = "v1"
			}
		}
	}
}

// foldValues removes the objects and lists in messages: Kubernetes shows them
// in the internal form, Borough in the form of the API.
func foldValues(message string) string {
	var folded strings.Builder
	for {
		at := strings.Index(message, "value: ")
		if at < 0 {
			return folded.String() + message
		}
		at += len("value: ")
		folded.WriteString(message[:at])
		message = message[at:]
		if message == "" || message[0] != '{' && message[0] != '[' {
			continue
		}
		decoder := json.NewDecoder(strings.NewReader(message))
		var value json.RawMessage
		if decoder.Decode(&value) == nil {
			folded.WriteString("...")
			message = message[decoder.InputOffset():]
		}
	}
}

// foldFinalizersFirst accepts that Borough has removed a Namespace that
// Kubernetes would remove with the next DELETE, because its finalizers were
// removed before the first.
func foldFinalizersFirst(x *exchange) {
	if x.step.method() != "GET" || x.step.resource() != "namespaces" || x.kube.Code != 200 || x.borough.Code != 404 {
		return
	}
	spec, _ := x.kube.field("spec").(map[string]any)
	metadata := metadataOf(x.kube.Body)
	if metadata["deletionTimestamp"] != nil && metadata["finalizers"] == nil && spec["finalizers"] == nil {
		*x.kube, x.end = *x.borough, true
	}
}

// foldFinalizersWithContent accepts that Kubernetes has removed a Namespace that Borough keeps until
// its content is deleted, because its finalizers were removed.
func foldFinalizersWithContent(x *exchange) {
	if x.step.method() != "GET" || x.step.resource() != "namespaces" || x.kube.Code != 404 || x.borough.Code != 200 {
		return
	}
	spec, _ := x.borough.field("spec").(map[string]any)
	if metadataOf(x.borough.Body)["deletionTimestamp"] != nil && spec["finalizers"] == nil {
		*x.kube, x.end = *x.borough, true
	}
}

// foldCollection accepts that Borough has deleted objects that Kubernetes kept
// when deletecollection failed for another object.
func foldCollection(x *exchange) {
	if x.after == nil || x.step.Do != "GET pods" || x.after.step.Do != "DELETE pods" || x.after.kube.Code < 400 {
		return
	}
	left, _ := x.kube.field("items").([]any)
	fewer, _ := x.borough.field("items").([]any)
	if len(fewer) < len(left) {
		x.kube.Body.(map[string]any)["items"], x.end = fewer, true
	}
}

// foldUnchangedByResize accepts Borough's response to a resize if Kubernetes
// checks or sets more: it validates and sets defaults for what the resize does
// not change.
func foldUnchangedByResize(x *exchange) {
	if !strings.Contains(x.step.Do, "/resize") {
		return
	}
	kube, borough := fmt.Sprint(x.kube.field("message")), fmt.Sprint(x.borough.field("message"))
	judged := x.kube.Code == 403 && strings.Contains(kube, " per ")
	given := x.kube.Code == 422 && strings.Contains(kube, "QOS Class may not change")
	_, said, _ := strings.Cut(borough, " is forbidden: ")
	if x.borough.Code == 200 && (judged || given) || x.borough.Code == 403 && judged && strings.Contains(kube, strings.Trim(said, "[]")) {
		*x.kube, x.end = *x.borough, true
	}
}

var (
	quantityInViolation = regexp.MustCompile(` (?:is|limit is|request is) (-?[0-9][0-9.a-zA-Z]*)`)
	checksNumber        = regexp.MustCompile(`is greater than max/min|must be an integer|is not positive integer multiple of`)
	fractionalWarning   = regexp.MustCompile(`fractional byte value \\?"([^"\\]+)\\?" is invalid`)
)

// foldLargeQuantities accepts Borough's response about quantities that do not
// fit into an int64, if at least one of the sides rejects a Pod and names one.
// Negative ones have to fit in thousandths, because Kubernetes always
// calculates with those, as it does to warn of fractions of a byte.
func foldLargeQuantities(x *exchange) {
	wrong := func(warning string) bool {
		match := fractionalWarning.FindStringSubmatch(warning)
		if match == nil || slices.Contains(x.borough.Warnings, warning) {
			return false
		}
		quantity, err := resource.ParseQuantity(match[1])
		return err == nil && (quantity.CmpInt64(resource.MaxMilliValue) > 0 || quantity.CmpInt64(-resource.MaxMilliValue) < 0)
	}
	if slices.ContainsFunc(x.kube.Warnings, wrong) {
		// Without warnings there is no header, and no slice.
		x.kube.Warnings = append([]string(nil), slices.DeleteFunc(x.kube.Warnings, wrong)...)
	}
	for _, a := range []*answer{x.kube, x.borough} {
		message := fmt.Sprint(a.field("message"))
		if a.Code == 422 && checksNumber.MatchString(message) && hasLargeQuantity(x.step.Body) && !reflect.DeepEqual(x.kube, x.borough) {
			*x.kube, x.end = *x.borough, true
			return
		}
		if a.Code != 403 || !strings.Contains(message, " usage per ") && !strings.Contains(message, " ratio per ") {
			continue
		}
		for _, match := range quantityInViolation.FindAllStringSubmatch(message, -1) {
			quantity, err := resource.ParseQuantity(match[1])
			if err == nil && (quantity.CmpInt64(math.MaxInt64) > 0 || quantity.CmpInt64(-resource.MaxMilliValue) < 0) && !reflect.DeepEqual(x.kube, x.borough) {
				*x.kube, x.end = *x.borough, true
				return
			}
		}
	}
}

// hasLargeQuantity reports whether a body has a quantity whose thousandths do not
// fit into an int64.
func hasLargeQuantity(body any) bool {
	switch body := body.(type) {
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(body)), hasLargeQuantity)
	case []any:
		return slices.ContainsFunc(body, hasLargeQuantity)
	}
	quantity, err := resource.ParseQuantity(fmt.Sprint(body))
	return err == nil && (quantity.CmpInt64(resource.MaxMilliValue) > 0 || quantity.CmpInt64(-resource.MaxMilliValue) < 0)
}

// foldClientErrors accepts a 4xx of Borough for a 500 of Kubernetes.
func foldClientErrors(x *exchange) {
	if x.kube.Code != 500 || !slices.Contains([]int{400, 413, 422}, x.borough.Code) {
		return
	}
	message := fmt.Sprint(x.kube.field("message"))
	inPath := strings.HasPrefix(message, "invalid key: ") || strings.Contains(message, "invalid resource name")
	if strings.HasPrefix(message, "strconv.ParseUint: ") || inPath || strings.Contains(fmt.Sprint(x.borough.field("message")), message) {
		*x.kube = *x.borough
	}
}

// refusesRights reports whether the message lists rights that a user can't grant.
func refusesRights(message string) bool {
	return strings.Contains(message, "is attempting to grant RBAC permissions not currently held")
}

// sortParts sorts the parts of a message that is a list.
func sortParts(message string) string {
	parts := strings.Split(strings.NewReplacer("[", ", ", "]", ", ").Replace(message), ", ")
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// foldReview sorts the rules in a review, and the roles that do not exist. They are
// in the order of the bindings.
func foldReview(a *answer) {
	status, ok := a.field("status").(map[string]any)
	if !ok || !strings.HasSuffix(fmt.Sprint(a.field("kind")), "Review") {
		return
	}
	for _, name := range []string{"resourceRules", "nonResourceRules"} {
		if rules, ok := status[name].([]any); ok {
			slices.SortFunc(rules, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
	}
	for _, name := range []string{"reason", "evaluationError"} {
		if text, ok := status[name].(string); ok && strings.HasSuffix(text, "]") {
			status[name] = sortParts(text)
		}
	}
}

var allowedBy = regexp.MustCompile(`^RBAC: allowed by (ClusterRoleBinding|RoleBinding) `)

// allowedByOthers reports whether both sides allow a request, by different bindings of
// the same kind.
func allowedByOthers(x *exchange) bool {
	var kinds [2]string
	for i, a := range []*answer{x.kube, x.borough} {
		status, _ := a.field("status").(map[string]any)
		match := allowedBy.FindStringSubmatch(fmt.Sprint(status["reason"]))
		if match == nil || status["allowed"] != true {
			return false
		}
		kinds[i] = match[1]
	}
	return kinds[0] == kinds[1]
}

// foldOrder sorts causes, and the finalizers of a Namespace after a delete.
// Kubernetes iterates over maps in random order. In objects of RBAC, there are none but labels
// and annotations.
func foldOrder(x *exchange) {
	for _, a := range []*answer{x.kube, x.borough} {
		if finalizers, ok := metadataOf(a.Body)["finalizers"].([]any); ok && x.step.resource() == "namespaces" {
			slices.SortFunc(finalizers, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
		message, hasMessage := a.field("message").(string)
		if a.Code == http.StatusUnprocessableEntity && strings.Contains(message, rbacv1.GroupName+" ") && !strings.Contains(message, "metadata.") {
			continue
		}
		causes := a.causes()
		slices.SortFunc(causes, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		a.setCauses(causes)
		foldReview(a)
		if hasMessage && a.field("kind") == "Status" {
			held := ""
			if refusesRights(message) { // the rights are in order, and only the errors are not
				held, message, _ = strings.Cut(message, "; resolution errors: ")
			}
			a.Body.(map[string]any)["message"] = held + sortParts(message)
		}
	}
}
