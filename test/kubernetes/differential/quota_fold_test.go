// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	tenancyv1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// quotaRefusal matches the message of a request that a quota refuses.
var quotaRefusal = regexp.MustCompile(` is forbidden: (?:(?:exceeded|failed) quota: ([^,:]+)|quota usage is negative)`)

// refusedByQuota reports whether a quota refuses the request, and returns its name.
func refusedByQuota(a *answer) (name string, refused bool) {
	match := quotaRefusal.FindStringSubmatch(fmt.Sprint(a.field("message")))
	if a.Code != 403 || match == nil {
		return "", false
	}
	return match[1], true
}

// refusedByOthers reports whether both sides refuse a request because of different
// quotas.
func refusedByOthers(x *exchange) bool {
	kube, kubeRefused := refusedByQuota(x.kube)
	borough, boroughRefused := refusedByQuota(x.borough)
	return kubeRefused && boroughRefused && kube != borough
}

// foldQuotaStatus accepts that the status of a ResourceQuota is complete when it is
// created or changed, also for resources that nothing uses, that no request writes it,
// and that it has no field manager.
func foldQuotaStatus(x *exchange) {
	if x.step.resource() != "resourcequotas" {
		return
	}
	if _, path, _ := strings.Cut(x.step.Do, "/"); strings.Contains(path, "/status") && x.borough.Code == 404 {
		*x.kube, x.end = *x.borough, true
		return
	}
	for _, a := range []*answer{x.kube, x.borough} {
		for _, quota := range quotasIn(a) {
			metadata := metadataOf(quota)
			if managed, ok := metadata["managedFields"].([]any); ok {
				managed = slices.DeleteFunc(managed, func(entry any) bool { return entry.(object)["subresource"] == "status" })
				if metadata["managedFields"] = managed; len(managed) == 0 {
					delete(metadata, "managedFields")
				}
			}
			if method := x.step.method(); method != "GET" && method != "DELETE" {
				delete(quota, "status")
			}
		}
	}
	foldMessages(func(message string) string { return patched.ReplaceAllString(message, "$1") })(x)
	kube, borough := quotasIn(x.kube), quotasIn(x.borough)
	for i := range min(len(kube), len(borough)) {
		addUnused(kube[i], borough[i])
	}
}

// foldQuotaRules removes the annotation that only quotas of Borough have. With it, no client is
// the first that sets annotations, and so the manager of the map.
func foldQuotaRules(x *exchange) {
	if x.step.resource() != "resourcequotas" {
		return
	}
	for _, a := range []*answer{x.kube, x.borough} {
		for _, quota := range quotasIn(a) {
			managed, _ := metadataOf(quota)["managedFields"].([]any)
			for _, entry := range managed {
				fields, _ := entry.(object)["fieldsV1"].(object)
				metadata, _ := fields["f:metadata"].(object)
				annotations, _ := metadata["f:annotations"].(object)
				delete(annotations, ".")
			}
		}
	}
	for _, quota := range quotasIn(x.borough) {
		metadata := metadataOf(quota)
		annotations, _ := metadata["annotations"].(object)
		delete(annotations, tenancyv1.UsageRulesAnnotation)
		if len(annotations) == 0 {
			delete(metadata, "annotations")
		}
	}
}

// patched matches the object, with its status, in the message about a patch that does
// not fit its schema.
var patched = regexp.MustCompile(`(Invalid value: )"\{(?:[^"\\]|\\.)*"`)

// addUnused adds the resources that a quota limits and nothing can use to the usage.
func addUnused(kube, borough object) {
	status, _ := kube["status"].(object)
	boroughStatus, _ := borough["status"].(object)
	if status["hard"] == nil { // not counted yet
		return
	}
	used, _ := status["used"].(object)
	boroughUsed, _ := boroughStatus["used"].(object)
	for name, quantity := range boroughUsed {
		if _, ok := used[name]; ok || quantity != "0" {
			continue
		}
		if used == nil {
			used = object{}
			status["used"] = used
		}
		used[name] = quantity
	}
}

// quotasIn returns the ResourceQuotas in a response.
func quotasIn(a *answer) (quotas []object) {
	switch a.field("kind") {
	case "ResourceQuota", "PartialObjectMetadata":
		return []object{a.Body.(object)}
	case "ResourceQuotaList", "PartialObjectMetadataList":
		items, _ := a.field("items").([]any)
		for _, item := range items {
			quotas = append(quotas, item.(object))
		}
	case "Table":
		rows, _ := a.field("rows").([]any)
		for _, row := range rows {
			quota, _ := row.(object)["object"].(object)
			quotas = append(quotas, quota)
		}
	}
	return quotas
}

// foldQuotaColumn removes the column with what is left of a quota.
func foldQuotaColumn(x *exchange) {
	columns, _ := x.borough.field("columnDefinitions").([]any)
	i := slices.IndexFunc(columns, func(column any) bool { return column.(object)["name"] == "Left" })
	if x.step.resource() != "resourcequotas" || i < 0 {
		return
	}
	x.borough.Body.(object)["columnDefinitions"] = slices.Delete(columns, i, i+1)
	rows, _ := x.borough.field("rows").([]any)
	for _, row := range rows {
		row := row.(object)
		row["cells"] = slices.Delete(row["cells"].([]any), i, i+1)
	}
}

// foldQuotaLast accepts that Borough rejects a request for another reason than a
// quota, which Kubernetes checks first.
func foldQuotaLast(x *exchange) {
	if _, refused := refusedByQuota(x.kube); refused && slices.Contains([]int{404, 409, 422}, x.borough.Code) {
		*x.kube = *x.borough
	}
}

// foldQuotaGrowth accepts that Borough refuses an update of a Pod by which the usage
// would exceed a quota.
func foldQuotaGrowth(x *exchange) {
	if _, refused := refusedByQuota(x.borough); refused && x.kube.Code == 200 && strings.HasSuffix(x.step.Do, "/status") {
		*x.kube, x.end = *x.borough, true
	}
}

// foldQuotaUnchanged accepts an update of a Pod that a quota requires to specify more.
func foldQuotaUnchanged(x *exchange) {
	message := fmt.Sprint(x.kube.field("message"))
	if x.kube.Code == 403 && x.borough.Code == 200 && strings.Contains(message, "failed quota: ") && x.step.method() != "POST" {
		*x.kube, x.end = *x.borough, true
	}
}

// foldQuotaValues accepts what Kubernetes does not process because a quota has a
// priority class that is not a label value.
func foldQuotaValues(x *exchange) {
	if x.kube.Code == 500 && strings.HasPrefix(fmt.Sprint(x.kube.field("message")), "error matching scopes of quota ") {
		*x.kube, x.end = *x.borough, true
	}
}

// foldQuotaNumbers accepts that Borough rejects a quota that is too large.
func foldQuotaNumbers(x *exchange) {
	if x.step.resource() == "resourcequotas" && x.kube.Code < 400 && x.borough.Code == 422 && strings.Contains(fmt.Sprint(x.borough.field("message")), ": Too many: ") {
		*x.kube, x.end = *x.borough, true
	}
}

// foldQuotaHolders removes the Pods that a refusal names.
func foldQuotaHolders(x *exchange) {
	if _, refused := refusedByQuota(x.borough); refused {
		message, _, _ := strings.Cut(fmt.Sprint(x.borough.field("message")), ", of which pods/")
		x.borough.Body.(object)["message"] = message
	}
}

var quantityOfQuota = regexp.MustCompile(`=([0-9][-+0-9.a-zA-Z]*)`)

// foldSums removes the format of quantities that are sums, in the status of quotas and
// in refusals.
func foldSums(x *exchange) {
	for _, a := range []*answer{x.kube, x.borough} {
		for _, quota := range quotasIn(a) {
			status, _ := quota["status"].(object)
			used, _ := status["used"].(object)
			for name, quantity := range used {
				used[name] = plain(fmt.Sprint(quantity))
			}
		}
		if _, refused := refusedByQuota(a); refused {
			body := a.Body.(object)
			body["message"] = quantityOfQuota.ReplaceAllStringFunc(fmt.Sprint(body["message"]), func(s string) string { return "=" + plain(s[1:]) })
		}
	}
}

// foldNotation accepts that status.hard of Kubernetes has another notation of the same
// quantities than spec.hard.
func foldNotation(x *exchange) {
	for _, quota := range quotasIn(x.kube) {
		spec, _ := quota["spec"].(object)
		status, _ := quota["status"].(object)
		hard, _ := spec["hard"].(object)
		written, _ := status["hard"].(object)
		for name, quantity := range written {
			if limit, limited := hard[name]; limited && plain(fmt.Sprint(limit)) == plain(fmt.Sprint(quantity)) {
				written[name] = limit
			}
		}
	}
}

// plain formats a quantity as a decimal number.
func plain(s string) string {
	quantity, err := resource.ParseQuantity(s)
	if err != nil {
		return s
	}
	text := quantity.AsDec().String()
	if strings.Contains(text, ".") {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return text
}
