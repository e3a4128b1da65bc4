// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// The fold normalizes what differs between any two servers, and between two
// runs of one: names of the group, UIDs, resourceVersions, the current time,
// and random names.

var (
	// ownGroupNames are those of Borough's own group.
	ownGroupNames = strings.NewReplacer(
		"/apis/"+v1.SchemeGroupVersion.String(), "/api/v1",
		"/"+v1.GroupName+"/", "/",
		v1.SchemeGroupVersion.String()+", Kind=", "/v1, Kind=",
		v1.SchemeGroupVersion.String(), "v1",
		"."+v1.GroupName, "",
	)
	uids             = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	resourceVersions = regexp.MustCompile(`(ResourceVersion in (?:precondition: |object meta: |the precondition \(|record \()|resourceVersion(?:\\?":\\?"|:))\d+`)
	timesOfDay       = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
)

// recent is the maximum distance from now of a time that a server has set.
const recent = time.Hour

// fold returns the response without what differs between servers.
func (v *visit) fold(a answer) answer {
	for i, warning := range a.Warnings {
		a.Warnings[i] = v.foldString(warning)
	}
	a.Body = v.foldValue(a.Body)
	foldMetadata(a.Body)
	items, _ := a.field("items").([]any)
	for _, item := range items {
		foldMetadata(item)
	}
	v.foldBootstrapRules(&a)
	foldTable(&a)
	if details, ok := a.field("details").(map[string]any); ok && v.inOwnGroup && details["group"] == v1.GroupName {
		delete(details, "group")
	}
	return a
}

// foldMetadata folds what depends on the time of the write.
func foldMetadata(object any) {
	metadata := metadataOf(object)
	if metadata["resourceVersion"] != nil {
		metadata["resourceVersion"] = "RV"
	}
	if managed, ok := metadata["managedFields"].([]any); ok { // sorted by time
		slices.SortFunc(managed, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
}

func (v *visit) foldValue(value any) any {
	switch value := value.(type) {
	case string:
		return v.foldString(value)
	case []any:
		for i := range value {
			value[i] = v.foldValue(value[i])
		}
	case map[string]any:
		for key := range value {
			value[key] = v.foldValue(value[key])
		}
	}
	return value
}

func (v *visit) foldString(s string) string {
	s = timesOfDay.ReplaceAllStringFunc(s, func(s string) string {
		if at, err := time.Parse(time.RFC3339, s); err == nil && time.Since(at).Abs() < recent {
			return "TIME"
		}
		return s
	})
	if v.inOwnGroup {
		s = ownGroupNames.Replace(s)
	}
	s = uids.ReplaceAllString(s, "UID")
	s = resourceVersions.ReplaceAllString(s, "${1}RV")
	for name, folded := range v.generated {
		s = strings.ReplaceAll(s, name, folded)
	}
	return s
}
