// Package history is the record of one run: what an operator's processes asked for, what
// became of it in Kubernetes and at the external API, and when. Invariants are functions of it.
package history

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Run is one scenario played under one schedule.
type Run struct {
	// Scenario is its name.
	Scenario string
	// Title is what a run is called in sentences about others that are compared with it: "if the user does so at rest". Empty is
	// [Undisturbed].
	Title string
	// Calls are all requests of the operator's processes, in the order in which they were let
	// through. Refused calls of dead processes are not among them; see Process.Fenced.
	Calls []Call
	// Changes are all revisions of objects in Kubernetes, whoever made them, oldest first.
	Changes []Change
	// External is what existed there: the first entry at the start, one more after each call
	// or step that changed it.
	External []View
	// Passes are the reconciles, in the order in which they began.
	Passes []Pass
	// Steps are the scenario's, in order.
	Steps []Step
	// Processes are the operator's processes, the first one first.
	Processes []Process
	// Silence is the watch kept after the last step; nil if the run did not come so far.
	Silence *Silence
	// Silences are all of them, of a run that keeps one after each step.
	Silences []Silence
	// Faults are those that were injected, at most a few.
	Faults []Fault
	// Shared are kinds of others whose content the operator may change: "deployments.apps".
	Shared []string
	// IsRandom reports whether an operator chose the name of an object at random: "configmaps", "a-x5bq2". Nil: it did so
	// with none.
	IsRandom func(kind, name string) bool
	// Secrets are values that belong into Secrets alone.
	Secrets []string
	// Masked are fields that are random.
	Masked []Field
	// Held is what there was while the driver's call did not return; nil if it did, or if the cluster
	// was as it should be all the same.
	Held *Held
	// Access is what the operator's roles said; nil if it runs as an administrator.
	Access *Access
	// Webhooks are those that the operator registered for a path that says for what, or that were to be called,
	// sorted by path.
	Webhooks []Webhook
}

// Undisturbed is what a run without a disturbance is called.
const Undisturbed = "without the disturbance"

// Side is where a call went.
type Side int

// The two sides.
const (
	Kubernetes Side = iota
	External
)

// Nobody is the index of a call, pass, step or process that does not exist.
const Nobody = -1

// Call is one request.
type Call struct {
	// Index is its place in Run.Calls.
	Index int
	At    time.Time
	// Process is its place in Run.Processes, Pass in Run.Passes; [Nobody] for requests outside
	// of any pass: informers, leases, events, goroutines.
	Process, Pass int
	Side          Side
	// Verb is Kubernetes' (get, list, watch, create, update, patch, delete, deletecollection)
	// or, for the external API, "read" or "write".
	Verb string
	// Group, Resource, Subresource, Namespace and Name are the target in Kubernetes.
	Group, Resource, Subresource, Namespace, Name string
	// What is the author's name of an external call: "create stream a".
	What string
	// Write reports whether it may change something.
	Write bool
	// PreconditionUID and PreconditionRV are those of a delete.
	PreconditionUID, PreconditionRV string
	// Body is the body of a patch, without what is secret; empty for others.
	Body string
	// Sent is the object in the body of a create or a server-side apply, as its caller wrote it: without defaults. Nil for others,
	// and in disturbed runs.
	Sent map[string]any
	// Code is the HTTP status that the server answered, before a fault replaced it; 0 if the
	// call never came there, or went to the external API by other means than HTTP.
	Code int
	// Err is what the caller got; empty for success, and for what an external API answers over HTTP,
	// which the operator has to read for itself.
	Err string
	// Rev is the first and Last the last revision of Kubernetes that the call made; 0 for none.
	Rev, Last int64
	// Changed reports whether something changed, on either side.
	Changed bool
	// Fault names the fault injected at this call, "" for none.
	Fault string
	// ForOthers is set if somebody else's request waits for it: in the path of that, a webhook of the operator
	// is called, which waits for a cache.
	ForOthers bool
}

// Change is one revision of one object.
type Change struct {
	Rev int64
	At  time.Time
	// Resource and Group name the kind; Namespace and Name the object.
	Group, Resource, Namespace, Name string
	// Before is nil for a new object, After for one that is gone. Neither may be modified.
	Before, After *unstructured.Unstructured
	// Call is the index of the operator's call that made it; [Nobody] if By is not an operator.
	Call int
	// By is "operator", "user", or the name of an actor: "garbage collector", "foreign".
	By string
	// Step is the index of the step during which it came to be.
	Step int
}

// Resource is one external resource, whoever made it.
type Resource struct {
	// Kind and ID identify it: "stream", "orders".
	Kind, ID string
	// Owner is the UID, or namespace/name, of the object for which the operator made it;
	// empty if it is not the operator's.
	Owner string
	// State is what users care about; the undisturbed run has the same in the end.
	State string
	// Ready is set if it works.
	Ready bool
}

// View is what existed at the external API from a moment on.
type View struct {
	At time.Time
	// Call is the operator's call that made it so, [Nobody] for a step or the start.
	Call      int
	Step      int
	Resources []Resource // sorted by Kind and ID
}

// Pass is one reconcile.
type Pass struct {
	Index, Process int
	Controller     string
	// Object is the request: namespace/name, or name.
	Object string
	Begin  time.Time
	// First is the index of the first call made after it began, Last that of the last one
	// before it ended, exclusive.
	First, Last int
	// Err is what it returned.
	Err string
	// Stale tells that watch events were held back when it began.
	Stale bool
	// Ended is false for one that was cut off.
	Ended bool
}

// Step is one of the scenario's.
type Step struct {
	Name string
	// Call and Rev are the number of calls and the revision when it began.
	Call int
	Rev  int64
	At   time.Time
	// Settled is when the cluster was quiet again; zero if it never was.
	Settled time.Time
	// SettledCall and SettledRev are the number of calls and the revision then.
	SettledCall int
	SettledRev  int64
	// State is what there was then.
	State State
	// Unmet is why the step's expectation was not met then; empty if it was, or if it says nothing about this run.
	Unmet string
	// Aged is what became of it afterwards, while only time went by; nil if nobody waited.
	Aged []Aged
	// Woken is what became of it after that, when the operator was started again; nil if it was not.
	Woken []Aged
}

// Aged is what becomes of one object or external resource while only time goes by, such as one with a TTL.
type Aged struct {
	// Key is that of the object in [State].Objects, or of an external resource: "external stream orders".
	Key string
	// Sheet is what it is like then, and Gone is set if it does not exist any more.
	Sheet string
	Gone  bool
	// After is how long that took from the moment at which the cluster was quiet.
	After time.Duration
	// Woken is set if that takes no time, but that the operator looks again: it was wrong before. It may then be so of some
	// of the fields alone.
	Woken bool
}

// State is both sides at one moment, without what differs from run to run: see package
// state.
type State struct {
	// Objects are normalized YAML by "resource.group namespace/name".
	Objects map[string]string
	// Resources are what existed at the external API, sorted.
	Resources []Resource
	// Given returns the YAML of what each cluster begins with and is in Objects only if it was changed, or, as
	// [Gone], if it was deleted; "" for all else. Nil means that there is none.
	Given func(key string) string
	// Masked are the texts of fields that are random and therefore left out of the others.
	Masked map[Field]string
	// Bonds are what such texts have in common in the undisturbed runs. So must those of a state that is
	// compared with this one.
	Bonds []Bond
}

// Field is one field of one object.
type Field struct {
	// Object is its key in [State].Objects.
	Object string
	// Path leads to the field: "data.password". An element of a list is [N].
	Path string
}

// String returns the field as users name it.
func (f Field) String() string { return f.Object + " " + f.Path }

// Bond says that a masked field has a text, and how that is related to the text of another one: random texts differ from
// run to run, but whether they are equal does not.
type Bond struct {
	// Of and With are the fields. With is the zero Field if Of just has a text.
	Of, With Field
	// Within is set if the text of Of is a part of that of With. Otherwise they are equal.
	Within bool
}

// Gone is the YAML of what a cluster began with and does not have any more.
const Gone = "gone"

// Hash is the same for equal states.
func (s State) Hash() string {
	h := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(s.Objects)) {
		fmt.Fprintf(h, "%s\x00%s\x00", key, s.Objects[key])
	}
	fmt.Fprintf(h, "%v", s.Resources)
	return string(h.Sum(nil))
}

// Process is one life of the operator.
type Process struct {
	Started time.Time
	// Fenced are calls that came after its death and were refused.
	Fenced []string
	// Leaked is the stacks of goroutines that were left when it had ended in an orderly way.
	Leaked string
	// Webhooks are the paths that it registered.
	Webhooks []string
	// Panics are what escaped from it, with stacks; Errors what its libraries logged as
	// handled errors.
	Panics []string
	// Collapsed is where the author's code panicked although nobody recovered it, so that the process
	// ended; empty if it did not.
	Collapsed string
}

// Webhook is one of the operator's, or one that a configuration names.
type Webhook struct {
	Path string
	// Implied is the resource for which it is called because of its path alone; empty if a configuration
	// may name it.
	Implied string
	// Calls is how often it answered, and Denied how often it did not allow what it was asked.
	Calls, Denied int
	// Unreached is how often no process of the operator served.
	Unreached int
	// Unregistered is set if it was to be called, but the operator had not registered it.
	Unregistered bool
}

// Held is the state while something waits for code that does not return.
type Held struct {
	// Call is the number of calls, Rev the revision and Step the step by then.
	Call int
	Rev  int64
	Step int
	// State is what there was.
	State State
}

// Silence is what was seen while nothing should have happened.
type Silence struct {
	// Call is the number of calls when it began. Resync tells that caches were rebuilt within it.
	Call, LastCall int
	From, To       time.Time
	// Restarted is the process started within it to rebuild caches; [Nobody] if none was.
	Restarted int
	// ReadsAllowed is how many external reads are declared for that time; -1 for any number.
	ReadsAllowed int
}

// Fault is one that was injected.
type Fault struct {
	// Kind as in replay tokens: "crash-before". Call is the index of the call, or [Nobody]; Next is the index of the call
	// that was made next.
	Kind       string
	Call, Next int
	// At says where in words.
	At   string
	Time time.Time
	Step int
	// Event is the event that was disturbed, in words: "the change of configmaps default/a". Empty if it was none.
	Event string
}

// Access is how the operator's roles were used.
type Access struct {
	// Denied are requests that no role allows: "patch streams/status".
	Denied []string
	// Unused are rules that no call needed: "get secrets".
	Unused []string
}

// Violation is a broken invariant.
type Violation struct {
	// Invariant is its id: "I2".
	Invariant string
	// Title is its name: "no leak".
	Title string
	// Message is one sentence: what is wrong, with what.
	Message string
	// Detail is a difference or a list, for below the sentence; may be empty.
	Detail string
	// Call is the index of the call at which it shows, or [Nobody].
	Call int
	// Subjects say what is wrong without what differs between runs, such as "statefulsets.apps
	// spec.replicas": the same mistake has the same ones. There is at least one.
	Subjects []string
	// Harmless is set for a habit that is reported as a note and is no finding.
	Harmless bool
}

// Object is the object after a change, or before it if that is its end.
func (c *Change) Object() *unstructured.Unstructured {
	if c.After == nil {
		return c.Before
	}
	return c.After
}

// WroteConditions reports whether a change was made to the conditions in the status of an object. Other
// changes of an object with conditions, such as the beginning of its deletion, show them as well.
func (c *Change) WroteConditions() bool {
	if c.After == nil {
		return false
	}
	after, _, _ := unstructured.NestedSlice(c.After.Object, "status", "conditions")
	if len(after) == 0 || c.Before == nil {
		return len(after) > 0
	}
	before, _, _ := unstructured.NestedSlice(c.Before.Object, "status", "conditions")
	return !reflect.DeepEqual(before, after)
}

// WrittenConditions are the types of the conditions that a change added or changed, in their order.
func (c *Change) WrittenConditions() (types []string) {
	if c.After == nil {
		return nil
	}
	var before []any
	if c.Before != nil {
		before, _, _ = unstructured.NestedSlice(c.Before.Object, "status", "conditions")
	}
	after, _, _ := unstructured.NestedSlice(c.After.Object, "status", "conditions")
	for _, condition := range after {
		m, _ := condition.(map[string]any)
		kind, _ := m["type"].(string)
		if kind != "" && !slices.ContainsFunc(before, func(b any) bool { return reflect.DeepEqual(b, condition) }) {
			types = append(types, kind)
		}
	}
	return types
}

// HasRandomState reports whether the states of external resources of a kind are random.
func (r *Run) HasRandomState(kind string) bool {
	return slices.ContainsFunc(r.Masked, func(f Field) bool { return strings.HasPrefix(f.Object+" ", "external "+kind+" ") })
}

// Housekeeping reports whether a kind is one of those that are no part of what an operator works on: leases, events,
// and reviews of access, which come and go in a cluster at rest.
func Housekeeping(group, resource string) bool {
	switch group {
	case "coordination.k8s.io":
		return resource == "leases"
	case "", "events.k8s.io":
		return resource == "events"
	case "authentication.k8s.io", "authorization.k8s.io":
		return true
	}
	return false
}

// Watched returns what reports whether the operator's caches show a kind: one that is listed or watched in no pass,
// and no housekeeping.
func (r *Run) Watched() func(group, resource string) bool {
	type kind struct{ group, resource string }
	all := map[kind]bool{}
	for i := range r.Calls {
		if c := &r.Calls[i]; c.Pass == Nobody && (c.Verb == "list" || c.Verb == "watch") && !Housekeeping(c.Group, c.Resource) {
			all[kind{c.Group, c.Resource}] = true
		}
	}
	return func(group, resource string) bool { return all[kind{group, resource}] }
}

// Target says in words what a call is: "patch streams/status default/orders", or the author's name of an
// external call.
func (c *Call) Target() string {
	if c.Side == External {
		return c.What
	}
	target := c.Verb + " " + c.Resource
	if c.Subresource != "" {
		target += "/" + c.Subresource
	}
	if c.Name != "" {
		target += " " + strings.TrimPrefix(c.Namespace+"/"+c.Name, "/")
	}
	return target
}

// Sort says what a call is, to what kind: without the names of objects, and without the numbers in an
// author's name of an external call.
func (c *Call) Sort() string {
	if c.Side == External {
		return strings.Join(strings.FieldsFunc(c.What, func(r rune) bool { return r == ' ' || '0' <= r && r <= '9' }), " ")
	}
	sort := c.Verb + " " + c.Resource
	if c.Group != "" {
		sort += "." + c.Group
	}
	if c.Subresource != "" {
		sort += "/" + c.Subresource
	}
	return sort
}

// StepOf returns during which step a call was made.
func (r *Run) StepOf(call int) int {
	for i, s := range slices.Backward(r.Steps) {
		if s.Call <= call {
			return i
		}
	}
	return 0
}

// EndingAs is the record up to a step, with another state at its end.
func (r *Run) EndingAs(step int, s State) *Run {
	other := *r
	other.Steps = slices.Clone(r.Steps[:step+1])
	other.Steps[step].State = s
	return &other
}
