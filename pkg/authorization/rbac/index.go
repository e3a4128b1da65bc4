// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/lru"

	"github.com/borough-io/borough/pkg/authfailure"
	"github.com/borough-io/borough/pkg/await"
	"github.com/borough-io/borough/pkg/history"
)

// Index is the policy at each position of its recent history, arranged so that a
// decision reads only the bindings of the user and the groups of a request. It keeps no
// more of each object than decisions need. It is safe for concurrent use.
//
// A position is a place in the order of all changes: the revision of etcd or, for the
// policy of a cluster, one that the caller assigns.
//
// Apply follows the changes of the policy. What it replaces or deletes stays, as a
// version that has ended, until there are very many.
type Index struct {
	mu      sync.RWMutex
	policy  policy
	reached await.Revision // the position; 0 before Reset
	signals signals
	// kept has the subjectRights that were last read, by rightsKey.
	kept *lru.Cache
}

// policy has versions of the objects. A version is in force from one position until
// another.
type policy struct {
	// effective returns the rules that decide for those of a role.
	effective func([]rbacv1.PolicyRule) []rbacv1.PolicyRule
	// roles has the Roles and, without a namespace, the ClusterRoles, also those to which
	// only bindings refer. pastRoles has their versions before the last one.
	roles     map[objectKey]*namedRole
	pastRoles history.Past[objectKey, *role]
	// bindings has, for each namespace, all versions of its RoleBindings and, without a
	// namespace, of the ClusterRoleBindings. They are in the order of compareBindings.
	bindings map[string][]*binding
	// subjects has the subjects of the bindings.
	subjects map[Subject]*subject
	// past has, for each subject, the versions of its bindings that have ended. Few subjects
	// have any.
	past map[*subject]pastBindings
	// aggregating has the ClusterRoles with an aggregation rule.
	aggregating map[objectKey]struct{}
	// ended has the versions that have ended, in that order, and endedBytes their size.
	ended      []ended
	endedBytes int
	// floor is the position at which the history begins.
	floor int64
	// changed is the position of the last change without a namespace, and changedIn that of
	// the last one in the namespaces of each shard.
	changed   int64
	changedIn [shards]int64
}

func newPolicy(effective func([]rbacv1.PolicyRule) []rbacv1.PolicyRule) policy {
	return policy{
		effective:   effective,
		roles:       map[objectKey]*namedRole{},
		pastRoles:   history.Past[objectKey, *role]{},
		bindings:    map[string][]*binding{},
		subjects:    map[Subject]*subject{},
		past:        map[*subject]pastBindings{},
		aggregating: map[objectKey]struct{}{},
	}
}

// pastBindings are versions of bindings, in the order in which they have ended.
type pastBindings struct {
	all []*binding
	in  map[string][]*binding // those of each namespace
}

type objectKey struct{ namespace, name string }

func compareKeys(a, b objectKey) int {
	return cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name))
}

// latest is the position of the state that is reached.
const latest = math.MaxInt64

// ended is a version that has ended: that of a binding, or one of a role.
type ended struct {
	at      int64
	binding *binding
	role    objectKey
	bytes   int
}

// namedRole is a Role or a ClusterRole, and the bindings that refer to it. It need not exist.
type namedRole struct {
	objectKey
	// last is the last version, nil if there is none in the history.
	last *role
	// bindings has all versions that refer to it, in the order of compareBindings.
	bindings []*binding
}

// role is a version of a Role or a ClusterRole.
type role struct {
	history.Lifetime
	rules []rbacv1.PolicyRule
	// effective are the rules that decide.
	effective []rbacv1.PolicyRule
	// brief reports that reading them costs less than to remember that they were read.
	brief bool
	// index has the effective rules of a large role, and is nil for others.
	index *ruleIndex
	// namespaces is what they allow on Namespaces.
	namespaces namespaceRights

	// Only of a ClusterRole:
	labels labels.Set
	// Only of a ClusterRole that aggregates others, whose rules are those that it
	// aggregates:
	selectors []labels.Selector
	stored    []rbacv1.PolicyRule
}

// The size of the parts of a version in memory, without the bytes of strings.
const (
	versionSize = 500
	ruleSize    = 150
	stringSize  = 16
	subjectSize = 100 // possibly of the only binding of the subject
)

// size returns about how much memory a version takes.
func (r *role) size() int {
	size := versionSize
	for i := range r.rules {
		size += ruleSize
		for _, list := range lists(&r.rules[i]) {
			for _, s := range list {
				size += stringSize + len(s)
			}
		}
	}
	if r.index != nil {
		size += r.index.size()
	}
	for key, value := range r.labels {
		size += 2*stringSize + len(key) + len(value)
	}
	return size
}

// role returns the version of a role that has not ended, or nil.
func (p *policy) role(key objectKey) *role {
	if n := p.roles[key]; n != nil {
		return p.at(n, latest)
	}
	return nil
}

// at returns the version of a role that is in force at a position, or nil.
func (p *policy) at(n *namedRole, position int64) *role {
	return p.pastRoles.At(n.objectKey, n.last, position)
}

// named returns the role with a key, which is new if there is none.
func (p *policy) named(key objectKey) *namedRole {
	n := p.roles[key]
	if n == nil {
		n = &namedRole{objectKey: key}
		p.roles[key] = n
	}
	return n
}

// removeUnused removes a role without versions to which no binding refers.
func (p *policy) removeUnused(n *namedRole) {
	if n.last == nil && len(n.bindings) == 0 {
		delete(p.roles, n.objectKey)
	}
}

// lastChange returns a position since which nothing has changed that applies in a namespace.
func (p *policy) lastChange(namespace string) int64 {
	return max(p.changed, p.changedIn[shardOf(namespace)])
}

// binding is a version of a RoleBinding or a ClusterRoleBinding.
type binding struct {
	history.Lifetime
	objectKey
	role     roleRef
	to       *namedRole     // to which role refers
	subjects []boundSubject // each once
}

// size returns about how much memory a version takes.
func (b *binding) size() int {
	size := versionSize
	for _, s := range b.subjects {
		size += subjectSize + len(s.Name)
	}
	return size
}

// roleRef is a reference to a role.
type roleRef struct {
	kind, name string
}

// boundSubject is a subject of a binding. A service account is the user as which it is
// authenticated.
type boundSubject struct {
	*subject
	account bool // whether it is a service account
}

// Subject is a user or a group.
type Subject struct {
	Group bool
	Name  string
}

// subject is a subject with its bindings in the order of compareBindings: those of the
// cluster are first. Versions that have ended are not among them, so that what is read at
// a position does not grow with the history before it.
type subject struct {
	Subject
	bindings []*binding
}

// compareBindings orders by namespace, name and age.
func compareBindings(a, b *binding) int {
	return cmp.Or(compareKeys(a.objectKey, b.objectKey), cmp.Compare(a.From, b.From))
}

// Subjects returns the subjects that a user is, each once.
func Subjects(u user.Info) []Subject {
	groups := sortedUnique(slices.Clone(u.GetGroups()))
	subjects := make([]Subject, 0, len(groups)+1)
	subjects = append(subjects, Subject{Name: u.GetName()})
	for _, group := range groups {
		subjects = append(subjects, Subject{Group: true, Name: group})
	}
	return subjects
}

// subjectOf returns a subject of a binding, and false if no user can be it.
func subjectOf(s *rbacv1.Subject, namespace string) (key Subject, account, ok bool) {
	switch s.Kind {
	case rbacv1.UserKind:
		return Subject{Name: s.Name}, false, true
	case rbacv1.GroupKind:
		return Subject{Group: true, Name: s.Name}, false, true
	case rbacv1.ServiceAccountKind:
		if namespace = cmp.Or(s.Namespace, namespace); namespace != "" {
			return Subject{Name: serviceaccount.MakeUsername(namespace, s.Name)}, true, true
		}
	}
	return Subject{}, false, false
}

// NewIndex returns an index without any policy, which has not synced. Decisions are by
// what effective returns for the rules of a role; nil leaves them as they are.
func NewIndex(effective func([]rbacv1.PolicyRule) []rbacv1.PolicyRule) *Index {
	if effective == nil {
		effective = func(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule { return rules }
	}
	return &Index{policy: newPolicy(effective), kept: lru.New(maxKept)}
}

// maxKept is how many rights of subjects with many bindings are kept.
const maxKept = 1000

// Changed returns a channel that is closed when a ClusterRole or ClusterRoleBinding
// changes, or a Role or RoleBinding in one of the namespaces.
func (x *Index) Changed(namespaces ...string) <-chan struct{} { return x.signals.channel(namespaces) }

// AwaitSync waits until the index has read the whole policy once.
func (x *Index) AwaitSync(ctx context.Context) error { return x.reached.Await(ctx, 1) }

// syncTimeout is how long a request waits for the policy to be read.
const syncTimeout = 2 * time.Second

// RequireSync returns ServiceUnavailable with Retry-After if the policy has not been
// read in time. The request is answered with it even where the library would answer
// with another error.
func (x *Index) RequireSync(ctx context.Context) error {
	wait, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	if err := x.AwaitSync(wait); err != nil {
		unavailable := authfailure.NewUnavailable("the RBAC objects have not been read yet")
		authfailure.Note(ctx, unavailable)
		return unavailable
	}
	return nil
}

// Resources returns the resources of the policy.
func Resources() []schema.GroupResource {
	return []schema.GroupResource{
		rbacv1.Resource("roles"), rbacv1.Resource("rolebindings"),
		rbacv1.Resource("clusterroles"), rbacv1.Resource("clusterrolebindings"),
	}
}
