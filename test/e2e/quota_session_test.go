// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/borough-io/borough/test/harness"
)

// The Pods of the session. The documentation does not show them.
var sessionPods = map[string]string{
	"web.yaml": sessionPod("web", "400m"),
	"job.yaml": sessionPod("job", "700m"),
}

func sessionPod(name, cpu string) string {
	return `
apiVersion: tenancy.borough.io/v1
kind: Pod
metadata: {name: ` + name + `, namespace: team-a}
spec:
  containers:
  - name: c
    image: example.com/image:1
    resources:
      requests: {cpu: ` + cpu + `}
      limits: {memory: 256Mi}
`
}

var (
	manifestBlock = regexp.MustCompile("(?s)<!-- (\\S+\\.yaml) -->\n```yaml\n(.*?)```\n")
	consoleBlock  = regexp.MustCompile("(?s)```console\n(.*?)```\n")
	age           = regexp.MustCompile(`\b\d+s\b`)
)

// TestQuotaSession runs the commands in docs/concepts/quotas.md, whose output must be
// the documented one except for ages, the width of columns, and lines "...".
func TestQuotaSession(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(harness.Root, "docs", "concepts", "quotas.md"))
	if err != nil {
		t.Fatal(err)
	}
	ns, dir := newNamespace(t, borough), t.TempDir()
	doc := strings.ReplaceAll(string(page), "team-a", ns)
	write := func(name, manifest string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(manifest, "team-a", ns)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, manifest := range sessionPods {
		write(name, manifest)
	}
	for _, manifest := range manifestBlock.FindAllStringSubmatch(doc, -1) {
		write(manifest[1], manifest[2])
	}
	commands := 0
	for _, block := range consoleBlock.FindAllStringSubmatch(doc, -1) {
		for _, step := range strings.Split("\n"+block[1], "\n$ kubectl ")[1:] {
			command, want, _ := strings.Cut(step, "\n")
			args := strings.Fields(command)
			for i, arg := range args {
				if strings.HasSuffix(arg, ".yaml") {
					args[i] = filepath.Join(dir, arg)
				}
			}
			stdout, stderr, _ := borough.TryKubectl(t, "", args...)
			got := strings.Join(rows(strings.ReplaceAll(stdout+stderr, dir+"/", "")), "\n")
			pattern := regexp.QuoteMeta(strings.Join(rows(want), "\n"))
			pattern = age.ReplaceAllString(pattern, `\d+s`)
			pattern = strings.ReplaceAll(strings.ReplaceAll(pattern, `\.\.\.`+"\n", `(?s:.*)`), "\n"+`\.\.\.`, `(?s:.*)`)
			if !regexp.MustCompile(`\A` + pattern + `\z`).MatchString(got) {
				t.Errorf("kubectl %s: got\n%s\nwant\n%s", command, got, want)
			}
			commands++
		}
	}
	if commands == 0 {
		t.Error("docs/concepts/quotas.md has no session")
	}
}
