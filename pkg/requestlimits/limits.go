// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package requestlimits bounds the content of requests, so that the cost of a request
// is at most a multiple of its size. It checks bodies before they are decoded,
// because decoding some bodies of a few bytes takes seconds.
//
// The limits are far above what is used in practice. docs/reference/request-limits.md
// lists them.
package requestlimits

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// MaxQuantityLength is the number of characters in the text of a quantity.
	// The largest quantity with a suffix, 9223372036854775807E, has 20.
	MaxQuantityLength = 100

	// MaxQuantityExponent is the largest exponent of ten of a quantity, positive
	// or negative. The suffixes reach from n (-9) to E (18). Decoding, adding and
	// comparing quantities takes time that grows with the exponent and not with
	// the length of the text (kubernetes#141306, kubernetes#142013).
	MaxQuantityExponent = 100

	// MaxDepth is how deep objects and lists may be nested in each other. The
	// deepest field of a Pod is at 13, its entry in metadata.managedFields at
	// about twice that.
	MaxDepth = 100

	// MaxContainers is the number of containers in a Pod, of init containers and
	// of ephemeral containers each, and of their statuses. A node runs some
	// hundred Pods.
	MaxContainers = 1000

	// MaxLimitRangeItems is the number of items in a LimitRange. There are three
	// types of them besides those that users define.
	MaxLimitRangeItems = 1000

	// MaxManagers is the number of entries in metadata.managedFields. Each is
	// compared with all that an update changes.
	MaxManagers = 200

	// MaxAppliers is the number of entries in metadata.managedFields that are of
	// server-side apply. Each apply can add one. The library bounds those of updates
	// to about ten, so what a client has read never has more than MaxManagers.
	MaxAppliers = 100

	// MaxOwners is the number of entries in metadata.ownerReferences. Each is
	// compared with all others that have the same UID.
	MaxOwners = 500

	// MaxNameLength is the number of bytes of metadata.name and metadata.generateName, of
	// each text of an owner reference, and of the names of containers and volumes and other
	// keys of elements that contain lists. Names have at most 253. Errors repeat them for
	// each volume of a Pod, for each owner, and for each error in an element.
	MaxNameLength = 1000

	// MaxElements is the number of elements in any other list and of entries in
	// any map. Every entry of a map takes part in ownership, where each is
	// inserted into a sorted list.
	MaxElements = 10000

	// MaxPatchOperations is the number of operations in a JSON patch. Each that
	// adds to a list copies the list.
	MaxPatchOperations = 1000

	// MaxPatchCopyBytes is the number of bytes that the operations of a JSON patch may copy.
	// The library allocates twelve times as much for them. No object is larger: etcd allows
	// 1.5 MiB in a request.
	MaxPatchCopyBytes = 1572864

	// MaxPatchElements is the number of elements of all lists of a strategic
	// merge patch together. Each is looked for in the list that it is merged into.
	MaxPatchElements = 1000

	// MaxRepeatedFields is the number of fields of a patch that their object already has.
	// The decoder warns of each, with the path to it.
	MaxRepeatedFields = 10

	// MaxMergeComparisons bounds the lists of an object that a strategic merge
	// patch is merged into: the squares of their lengths, added up. The library
	// looks for each element in the list from its start, also for those that the
	// patch leaves alone.
	MaxMergeComparisons = 4000000

	// MaxYAMLNodes is the number of values in a YAML body after its aliases have
	// been replaced by what they stand for. A body without aliases may have more.
	MaxYAMLNodes = 10000

	// MaxAliasBytes is the number of bytes of the texts that the aliases of a YAML body
	// add to it: the decoder writes a text once for each alias.
	MaxAliasBytes = 200000

	// MaxErrors is the number of errors that an answer names. Putting together
	// their message takes time that grows with the square of the number.
	MaxErrors = 100

	// MaxSelectorTerms is the number of requirements of a label selector or a field
	// selector, and of the values in them, together. Each can be compared with each object
	// of a list, which does not end with the request.
	MaxSelectorTerms = 1000

	// MaxSelectorErrors is the number of invalid values in a list of a label selector.
	// The parser names all of them, each with the whole key, in a message that takes
	// as long as one of many errors.
	MaxSelectorErrors = 10
)

// Error says which limit a request exceeds, and where.
type Error struct {
	Path   string // of the field, empty for the whole body
	Detail string
}

// Error implements error.
func (e *Error) Error() string {
	if e.Path == "" {
		return e.Detail
	}
	return e.Path + ": " + e.Detail
}

// maxPathElement is how much of a name that a client has chosen an Error shows.
const maxPathElement = 100

// atField puts the name of a field, or the key of a map, before the path of an
// Error.
func atField(err error, name []byte, key bool) error {
	if len(name) > maxPathElement {
		name = append(name[:maxPathElement:maxPathElement], "..."...)
	}
	if key {
		return at(err, "["+string(name)+"]")
	}
	return at(err, string(name))
}

// atIndex puts the index of a list before the path of an Error.
func atIndex(err error, i int) error { return at(err, "["+strconv.Itoa(i)+"]") }

func at(err error, element string) error {
	limit, ok := err.(*Error)
	if !ok {
		return err
	}
	if element != "" && limit.Path != "" && limit.Path[0] != '[' {
		element += "."
	}
	return &Error{Path: element + limit.Path, Detail: limit.Detail}
}

// CheckQuantity returns why the text of a quantity exceeds the limits, or "". It
// returns "" also for an invalid quantity, which costs little to refuse.
func CheckQuantity(text string) string {
	if len(text) > MaxQuantityLength {
		return fmt.Sprintf("a quantity must have at most %d characters", MaxQuantityLength)
	}
	if isMisread(text) {
		return "a multiple of 1000E must be written with an exponent, such as 1e21"
	}
	// The suffixes E and Ei have no digits after them.
	at := strings.LastIndexAny(text, "eE")
	if at < 0 {
		return ""
	}
	digits := strings.TrimLeft(strings.TrimRight(text[at+1:], " \t\r\n"), "+-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return ""
	}
	if exponent, err := strconv.Atoi(digits); err != nil || exponent > MaxQuantityExponent {
		return fmt.Sprintf("the exponent of a quantity must be between -%d and %d", MaxQuantityExponent, MaxQuantityExponent)
	}
	return ""
}

// isMisread reports whether a quantity would be stored as another one: the library has
// no suffix for multiples of 1000E, and writes them without one.
func isMisread(text string) bool {
	const suffixes = "kMGTPE" // each a thousand times the one before
	digits := strings.TrimLeft(strings.TrimSpace(text), "+-")
	magnitude := strings.IndexFunc(digits+".", func(r rune) bool { return r < '0' || r > '9' })
	if at := strings.IndexAny(digits, suffixes); at >= 0 {
		magnitude += 3 * (1 + strings.IndexByte(suffixes, digits[at]))
	}
	if magnitude <= 21 { // less than 1000E
		return false
	}
	quantity, err := resource.ParseQuantity(strings.TrimSpace(text))
	if err != nil {
		return false
	}
	read, err := resource.ParseQuantity(quantity.String())
	return err != nil || quantity.Cmp(read) != 0
}

// LimitErrors returns the first MaxErrors errors, each once, with one more that says how
// many there are, where there are more.
func LimitErrors(errs field.ErrorList) field.ErrorList {
	seen := sets.New[string]()
	var limited field.ErrorList
	for _, err := range errs[:min(len(errs), MaxErrors)] {
		if text := err.Error(); !seen.Has(text) {
			seen.Insert(text)
			limited = append(limited, err)
		}
	}
	if len(errs) > MaxErrors {
		// The path of the object itself is empty.
		limited = append(limited, &field.Error{
			Type:     field.ErrorTypeTooMany,
			BadValue: int64(len(errs)),
			Detail:   fmt.Sprintf("only the first %d errors are shown", MaxErrors),
		})
	}
	return limited
}
