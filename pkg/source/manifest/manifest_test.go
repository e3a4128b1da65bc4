// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/borough-io/borough/pkg/source"
)

const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: c, image: i}]}\n"

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		data string
		want string // the names
		// blank is whether there is neither a Pod nor a list.
		blank bool
		err   string
	}{
		"a Pod":                 {data: fmt.Sprintf(pod, "a"), want: "a"},
		"documents":             {data: "# comment\n---\n" + fmt.Sprintf(pod, "a") + "---\n---\n" + fmt.Sprintf(pod, "b"), want: "a b"},
		"Windows lines":         {data: strings.ReplaceAll(fmt.Sprintf(pod, "a")+"---\n"+fmt.Sprintf(pod, "b"), "\n", "\r\n"), want: "a b"},
		"our group":             {data: strings.Replace(fmt.Sprintf(pod, "a"), "v1", "tenancy.borough.io/v1", 1), want: "a"},
		"JSON":                  {data: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{}} {"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"},"spec":{}}`, want: "a b"},
		"JSON as YAML":          {data: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{}}` + "\n---\n" + `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"},"spec":{}}`, want: "a b"},
		"escapes in JSON":       {data: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","annotations":{"a":"\ud83d\ude80"}},"spec":{}}`, want: "a"},
		"flow YAML":             {data: `{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {}}`, want: "a"},
		"a PodList":             {data: `{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"a"},"spec":{}},{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"},"spec":{}}]}`, want: "a b"},
		"a List":                {data: "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {}}\n", want: "a"},
		"no items":              {data: `{"apiVersion":"v1","kind":"PodList","items":[]}`},
		"null items":            {data: `{"apiVersion":"v1","kind":"PodList","items":null}`},
		"only a comment":        {data: "# PodList\n", blank: true},
		"null":                  {data: "# List\nnull\n", blank: true},
		"null and a list":       {data: "null\n---\napiVersion: v1\nkind: PodList\n"},
		"anchors":               {data: "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: &l {x: z}, annotations: *l}\nspec: {}\n", want: "a"},
		"empty":                 {err: "is empty"},
		"no YAML":               {data: "a: [", err: "document 1: yaml"},
		"a page":                {data: "<!DOCTYPE html><html><body>Not found</body></html>", err: "document 1: is not an object"},
		"half a document":       {data: fmt.Sprintf(pod, "a")[:40], err: "document 1"},
		"cut off JSON":          {data: `{"apiVersion":"v1","kind":"PodList","items":[`, err: "document 1"},
		"cut off at a buffer":   {data: cutOff(8192), err: "document 1: yaml"},
		"a line of a buffer":    {data: fmt.Sprintf(pod, "a") + "---\n" + jsonOf("b", 4096), want: "a b"},
		"JSON and rubbish":      {data: `{"apiVersion":"v1","kind":"PodList","items":[]} x`, err: "document 2"},
		"another kind":          {data: "apiVersion: apps/v1\nkind: Deployment\n", err: `apiVersion "apps/v1", kind "Deployment": must be a Pod`},
		"another version":       {data: strings.Replace(fmt.Sprintf(pod, "a"), "v1", "v2", 1), err: `apiVersion "v2"`},
		"no kind":               {data: "a: b\n", err: "must be a Pod"},
		"another item":          {data: "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Secret}]", err: `document 1: items[0]: apiVersion "v1", kind "Secret"`},
		"an item as text":       {data: "apiVersion: v1\nkind: List\nitems: [x]", err: "items[0]: is not an object"},
		"items as text":         {data: "apiVersion: v1\nkind: List\nitems: x", err: "items: must be a list"},
		"a part of a list":      {data: `{"apiVersion":"v1","kind":"PodList","metadata":{"continue":"x"},"items":[]}`, err: "metadata.continue: must not be set"},
		"twice":                 {data: fmt.Sprintf(pod, "a") + "---\n" + fmt.Sprintf(pod, "a"), err: `document 2: metadata.name: there are two Pods "a"`},
		"JSON after a comment":  {data: "# comment\n" + `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{}}` + "\n" + `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"},"spec":{}}`, err: "document 1: has content after its end"},
		"JSON after ---":        {data: "---\n" + `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{}}` + "\n" + `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"},"spec":{}}`, err: "document 1: has content after its end"},
		"the end of a document": {data: fmt.Sprintf(pod, "a") + "...\n# comment\n", want: "a"},
		"after the end":         {data: fmt.Sprintf(pod, "a") + "...\n" + fmt.Sprintf(pod, "b"), err: "document 1: has content after its end"},
		"a key twice":           {data: "apiVersion: v1\nkind: Pod\nkind: Pod\n", err: "already set"},
		"a JSON key twice":      {data: `{"apiVersion":"v1","kind":"Pod","kind":"Pod"}`, err: `document 1: duplicate field "kind"`},
		"a list in JSON":        {data: "--- \n[]", err: "is not an object"},
		"no name":               {data: "apiVersion: v1\nkind: Pod\nmetadata: {generateName: a}\nspec: {}\n", err: "metadata.name: must be"},
		"a number as name":      {data: "apiVersion: v1\nkind: Pod\nmetadata: {name: 1}\nspec: {}\n", err: "metadata.name: must be"},
		"no metadata":           {data: "apiVersion: v1\nkind: Pod\nspec: {}\n", err: "metadata: must be an object"},
		"no spec":               {data: "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n", err: "spec: must be an object"},
		"labels as list":        {data: "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: [b]}\nspec: {}\n", err: "metadata.labels: must be"},
		"numbers as labels":     {data: "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {b: 1}}\nspec: {}\n", err: "metadata.labels: must be"},
		"a YAML bomb":           {data: bomb(), err: "must have at most"},
		"deep":                  {data: "a: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000), err: "document 1"},
		"many documents":        {data: strings.Repeat("---\n# x\n", 10000) + strings.Repeat("---\na: b\n", 10000), err: "document"},
		"many empty ones":       {data: strings.Repeat("---\n", 10000), blank: true},
		"too many empty ones":   {data: strings.Repeat("---\n", 10<<20/4), err: "the source has more than 20000 documents"},
		"many Pods":             {data: list(source.MaxPods + 1), err: "the source has more than 1000 Pods"},
		"enough Pods":           {data: list(source.MaxPods), want: names(source.MaxPods)},
	} {
		t.Run(name, func(t *testing.T) {
			pods, blank, err := Parse([]byte(tc.data), NewRemaining())
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) || pods != nil {
					t.Fatalf("got %d Pods and the error %v, want %q", len(pods), err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, pod := range pods {
				got = append(got, pod.GetName())
			}
			if strings.Join(got, " ") != tc.want || blank != tc.blank {
				t.Errorf("got %v, blank %t, want %s, %t", got, blank, tc.want, tc.blank)
			}
		})
	}
	if _, _, err := Parse(nil, NewRemaining()); !errors.Is(err, ErrEmpty) {
		t.Errorf("got %v, want ErrEmpty", err)
	}
}

// jsonOf returns a Pod in JSON, in one line with a number of bytes.
func jsonOf(name string, size int) string {
	before, after := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"`+name+`","annotations":{"a":"`, `"}},"spec":{}}`
	return before + strings.Repeat("x", size-len(before)-len(after)) + after
}

// cutOff returns the first bytes of a Pod in JSON.
func cutOff(size int) string { return jsonOf("a", size+10)[:size] }

// TestParseKeeps checks which fields of a Pod are kept, and that numbers stay what they are.
func TestParseKeeps(t *testing.T) {
	pods, _, err := Parse([]byte(`
apiVersion: v1
kind: Pod
metadata:
  name: a
  namespace: other
  uid: x
  resourceVersion: "1"
  ownerReferences: []
  labels: {l: l}
  annotations: {a: a}
  finalizers: [example.com/f]
spec: {terminationGracePeriodSeconds: 9007199254740993}
status: {phase: Running}
`), NewRemaining())
	if err != nil {
		t.Fatal(err)
	}
	got, err := pods[0].MarshalJSON()
	want := `{"apiVersion":"tenancy.borough.io/v1","kind":"Pod","metadata":{"annotations":{"a":"a"},"finalizers":["example.com/f"],"labels":{"l":"l"},"name":"a"},"spec":{"terminationGracePeriodSeconds":9007199254740993}}`
	if err != nil || strings.TrimSpace(string(got)) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}

// bomb returns YAML that is large once its aliases are replaced.
func bomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x]\n")
	for i := range 9 {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 9), ","))
	}
	return b.String()
}

func list(n int) string {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: PodList\nitems:\n")
	for i := range n {
		fmt.Fprintf(&b, "- {metadata: {name: p%d}, spec: {}}\n", i)
	}
	return b.String()
}

func names(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "p%d ", i)
	}
	return strings.TrimSpace(b.String())
}

// FuzzParse checks that what was accepted has what the rest of the program relies on.
func FuzzParse(f *testing.F) {
	f.Add([]byte(fmt.Sprintf(pod, "a") + "---\n" + fmt.Sprintf(pod, "b")))
	f.Add([]byte(list(3)))
	f.Add([]byte(bomb()))
	f.Add([]byte(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":{"a":"b"}},"spec":{}}]}`))
	identity := source.Identity{Kind: source.File, Location: "/p", Node: "n"}
	f.Fuzz(func(t *testing.T, data []byte) {
		pods, blank, err := Parse(data, &Remaining{Pods: 10, Documents: 100})
		if (err != nil || blank) && pods != nil {
			t.Fatal("Pods, and an error or nothing")
		}
		if len(pods) > 10 {
			t.Fatalf("%d Pods", len(pods))
		}
		seen := map[string]bool{}
		for _, pod := range pods {
			if pod.GetName() == "" || seen[pod.GetName()] {
				t.Fatalf("the name %q", pod.GetName())
			}
			seen[pod.GetName()] = true
			if got, err := identity.Pod("f", pod); err == nil && (got.GetLabels()[source.Label] != identity.ID() || got.GetAnnotations()[source.FileAnnotation] != "f") {
				t.Fatalf("got %v", got.Object)
			}
		}
	})
}
