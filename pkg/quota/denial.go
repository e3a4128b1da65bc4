// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	quotav1 "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/utils/ptr"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// maxHolders is the number of Pods that a denial names.
const maxHolders = 3

// MaxExamined is the maximum number of Pods in which a denial looks for those that it names:
// computing what a Pod holds takes some microseconds, and a Namespace can have any number of
// Pods that are being deleted. maxExaminedSize is their size in bytes after which it looks at
// no more.
const (
	MaxExamined     = 100
	maxExaminedSize = 1 << 20
)

// Denial is why a quota does not allow a write. The text is that of Kubernetes.
type Denial struct {
	text string
	// quota is the one of which too much would be used, of the resources exceeded, or
	// nil.
	quota    *tenancy.ResourceQuota
	exceeded []corev1.ResourceName
}

// NewDenial returns a Denial with a text.
func NewDenial(text string) *Denial { return &Denial{text: text} }

// Error returns the text.
func (d *Denial) Error() string { return d.text }

// Exceeded reports whether too much of a quota would be used. Otherwise the write is
// wrong, however much is left.
func (d *Denial) Exceeded() bool { return d != nil && d.quota != nil }

// WithHolders returns a Denial that also names the Pods that are being deleted and hold
// what is missing: the user only has to wait for them. The objects are Pods of the
// Namespace that are being deleted. If there are more than MaxExamined, or they are very
// large, the others are not considered.
func (d *Denial) WithHolders(objects []runtime.Object) *Denial {
	if d.quota == nil {
		return d
	}
	type holder struct {
		*tenancy.Pod
		holds corev1.ResourceList
	}
	var holders []holder
	examined, size := 0, 0
	for _, obj := range objects {
		pod, ok := obj.(*tenancy.Pod)
		if !ok {
			continue
		}
		if examined == MaxExamined || size >= maxExaminedSize {
			break
		}
		examined++
		size += (*corev1.Pod)(pod).Size()
		usage := Of(tenancy.Resource("pods"), pod).charged(d.quota)
		if holds := quotav1.RemoveZeros(quotav1.Mask(usage, d.exceeded)); len(holds) > 0 {
			holders = append(holders, holder{pod, holds})
		}
	}
	if len(holders) == 0 {
		return d
	}
	slices.SortFunc(holders, func(a, b holder) int {
		return cmp.Or(a.DeletionTimestamp.Compare(b.DeletionTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	var parts []string
	for _, h := range holders[:min(len(holders), maxHolders)] {
		grace := time.Duration(ptr.Deref(h.DeletionGracePeriodSeconds, 0)) * time.Second
		// The deletionTimestamp is the end of the grace period.
		since := time.Since(h.DeletionTimestamp.Add(-grace))
		parts = append(parts, fmt.Sprintf("pods/%s (Terminating for %s) holds %s", h.Name, duration.HumanDuration(since), listText(h.holds)))
	}
	switch more := len(holders) - len(parts); {
	case examined < len(objects):
		parts = append(parts, "and perhaps more Pods that are being deleted")
	case more > 0:
		parts = append(parts, fmt.Sprintf("and %d more Pods that are being deleted", more))
	}
	return &Denial{text: d.text + ", of which " + strings.Join(parts, ", ")}
}
