// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"regexp"
	"strings"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// groupNames removes the name of Borough's own group in the forms in which kubectl and
// the servers show it: `pods.G "x"`, `pod.G/x`, `apiVersion: G/v1`,
// `limitrange.G/v1`, `/apis/G/v1`, `G/v1, Kind=Pod`, and a line of `kubectl
// explain`.
var groupNames = strings.NewReplacer(
	"GROUP:      "+v1.GroupName+"\n", "",
	"/apis/"+v1.SchemeGroupVersion.String(), "/api/v1",
	v1.SchemeGroupVersion.String()+", ", "/v1, ",
	"/registry/"+v1.GroupName+"/", "/registry/",
	v1.SchemeGroupVersion.String(), "v1",
	v1.GroupName+".v1.", "v1.", // the files of kubectl diff
	"."+v1.GroupName, "",
)

// folds are applied in this order.
var folds = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`(resourceVersion(?:\\*"?: ?\\*"?|=))\d+`), "${1}RV"},
	// Times, also in the file names of kubectl diff.
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "TIME"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [+-]\d{4}`), "TIME"},
	// The age of an object in a column.
	{regexp.MustCompile(`  (?:\d+m\d*s?|\d+s)\b`), "  AGE"},
	// Group of an object with labels, which is empty for core.
	{regexp.MustCompile(`(Listing labels for [A-Za-z]+)\./`), "${1}/"},
	// Random file names.
	{regexp.MustCompile(`kubectl-edit-\d+|(LIVE|MERGED)-\d+`), "${1}FILE"},
	{regexp.MustCompile(`https://127\.0\.0\.1:\d+`), "SERVER"},
	// What kubectl logs if the timeout of a command ends a watch before the response.
	{regexp.MustCompile(`(?m)^E\d{4} .* "Failed to watch" err="context deadline exceeded" .*\n`), ""},
	// Column widths depend on the folded values.
	{regexp.MustCompile(`(\S) {3,}`), "${1}   "},
	{regexp.MustCompile(`(?m) +$`), ""},
}

func fold(text string) string {
	for _, f := range folds {
		text = f.pattern.ReplaceAllString(text, f.by)
	}
	return text
}
