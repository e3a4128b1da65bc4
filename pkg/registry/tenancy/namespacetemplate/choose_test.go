// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespacetemplate

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

func TestChoose(t *testing.T) {
	// A template is its name and the value of the label that it selects, if any.
	templates := func(list string) (templates []tenancy.NamespaceTemplate) {
		for text := range strings.FieldsSeq(list) {
			name, value, selects := strings.Cut(text, "=")
			template := tenancy.NamespaceTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}}
			switch {
			case selects && value == "*":
				template.Spec.NamespaceSelector = &metav1.LabelSelector{}
			case selects && value == "!":
				template.Spec.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "invalid"}}}
			case selects:
				template.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": value}}
			}
			templates = append(templates, template)
		}
		return templates
	}
	var many []string
	for i := range 12 {
		many = append(many, fmt.Sprintf("t%02d=1", i))
	}
	for _, test := range []struct{ templates, want, wantErr string }{
		{"", "", ""},
		{"t=2", "", ""},
		{"t=1", "t", ""},
		{"default", "default", ""},
		{"default t=1", "t", ""},
		{"t=2 default", "default", ""},
		{"all=*", "all", ""},
		{"default other t=1", "t", ""},
		{"default u=2 other", "", `the namespace templates "default" and "other" have no selector, but only one template can be the default`},
		{"u=1 default t=1", "", `the namespace templates "t" and "u" select it by its labels, but only one template can apply`},
		{"all=* t=1", "", `the namespace templates "all" and "t" select`},
		{strings.Join(many, " "), "", `the namespace templates "t00", "t01", "t02", "t03", "t04", "t05", "t06", "t07", "t08", "t09" and 2 more select`},
		{"t=!", "", `read the selector of namespace template "t"`},
	} {
		ns := &tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"a": "1"}}}
		got, err := choose(templates(test.templates), ns)
		var name string
		if got != nil {
			name = got.Name
		}
		if name != test.want || (err != nil) != (test.wantErr != "") || err != nil && !strings.HasPrefix(err.Error(), test.wantErr) {
			t.Errorf("%s: got %q, %v; want %q, %s", test.templates, name, err, test.want, test.wantErr)
		}
	}
}

// TestUnreadableBeforeList checks that a template that cannot be read is found before the
// templates are listed: it can be read again after the list.
func TestUnreadableBeforeList(t *testing.T) {
	r := &REST{unreadable: func() []string { return []string{"lost"} }} // without a store to list from
	_, err := r.For(t.Context(), &tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}, false)
	if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), `namespace template "lost" cannot be read from storage`) {
		t.Errorf("got %v", err)
	}
}
