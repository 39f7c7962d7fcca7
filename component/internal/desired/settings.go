package desired

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/health"
	"github.com/trimtab-dev/trimtab/internal/fingerprint"
)

// What the annotations of an object can set, as the end of their names.
const (
	adoptionPolicy  = "adoption-policy"
	reconcilePolicy = "reconcile-policy"
	updatePolicy    = "update-policy"
	deletePolicy    = "delete-policy"
	conflictPolicy  = "conflict-policy"
	immutablePolicy = "immutable-policy"
	acceptDataLoss  = "accept-data-loss"
	mode            = "mode"

	ignoreAlways        = "ignore"
	ignoreAfterCreation = "ignore-after-creation"
	applyOrder          = "apply-order"
	purgeOrder          = "purge-order"
	deleteOrder         = "delete-order"
	statusHint          = "status-hint"
	dependsOn           = "depends-on"
	implicitEdges       = "implicit-edges"
	healthRule          = "health"
	timeout             = "timeout"
	applyOn             = "apply-on"
	uncounted           = "uncounted"
)

func names() []string {
	return []string{
		adoptionPolicy, reconcilePolicy, updatePolicy, deletePolicy, conflictPolicy, immutablePolicy, acceptDataLoss, mode, ignoreAlways,
		ignoreAfterCreation, applyOrder, purgeOrder, deleteOrder, statusHint, healthRule, dependsOn, implicitEdges, timeout, applyOn, uncounted,
	}
}

// unset is a deprecated way to say that a policy is the operator's default.
const unset = "default"

// class is a class of implicit edges. The annotation implicit-edges switches them off for the object
// that would wait.
type class string

const (
	// classTypes is from instances to what defines their type.
	classTypes class = "types"
	// classNamespaces is from objects to their Namespace.
	classNamespaces class = "namespaces"
	// classAccounts is from workloads to their ServiceAccount and its permissions.
	classAccounts class = "accounts"
	// classBackends is from what the API server calls to the workloads that answer.
	classBackends class = "backends"
)

func classes() []class {
	return []class{classTypes, classNamespaces, classAccounts, classBackends}
}

// settings are what the annotations of an object say beyond what ends up in its [Object].
type settings struct {
	dependsOn []string
	initial   []fingerprint.Path
	without   []class
}

// settle takes the operator's annotations of an object out and applies what they say. Annotations of
// other operators stay.
func (s *set) settle(d *draft, annotations map[string]string) {
	a := asked{set: s, draft: d, from: annotations}
	d.Item.AdoptionPolicy = policy(a, adoptionPolicy, s.Policies.AdoptionPolicy, false,
		api.AdoptionPolicyNever, api.AdoptionPolicyIfUnowned, api.AdoptionPolicyAlways)
	d.Item.ReconcilePolicy = policy(a, reconcilePolicy, s.Policies.ReconcilePolicy, false,
		api.ReconcilePolicyOnObjectChange, api.ReconcilePolicyOnObjectOrComponentChange, api.ReconcilePolicyOnce)
	d.Item.UpdatePolicy = policy(a, updatePolicy, s.Policies.UpdatePolicy, true,
		api.UpdatePolicyReplace, api.UpdatePolicySsaMerge, api.UpdatePolicySsaOverride, api.UpdatePolicyRecreate)
	d.Item.DeletePolicy = policy(a, deletePolicy, s.Policies.DeletePolicy, true,
		api.DeletePolicyDelete, api.DeletePolicyOrphan, api.DeletePolicyOrphanOnApply, api.DeletePolicyOrphanOnDelete)
	d.Item.ConflictPolicy = unlessDefault(api.ConflictPolicyForce, policy(a, conflictPolicy, s.Policies.ConflictPolicy, false,
		api.ConflictPolicyForce, api.ConflictPolicyFail))
	d.Item.ImmutablePolicy = unlessDefault(api.ImmutablePolicyFail, policy(a, immutablePolicy, s.Policies.ImmutablePolicy, false,
		api.ImmutablePolicyFail, api.ImmutablePolicyRecreate))
	d.Item.Mode = unlessDefault(api.ModeFull, policy(a, mode, s.Policies.Mode, false,
		api.ModeFull, api.ModeDetectOnly, api.ModeSuspended))
	d.AcceptDataLoss = a.flag(acceptDataLoss)
	s.checkConflicts(d)
	d.Ignored, d.initial = a.fields(ignoreAlways), a.fields(ignoreAfterCreation)
	if order := a.order(applyOrder); order != nil {
		d.Item.ApplyOrder = *order
	}
	if order := a.order(deleteOrder); order != nil {
		d.Item.DeleteOrder = *order
	}
	d.Purge = a.order(purgeOrder)
	d.Timeout = a.duration(timeout)
	d.Uncounted = a.flag(uncounted)
	event := a.take(applyOn)
	hints, rule := a.take(statusHint), a.take(healthRule)
	d.Hints = a.hints(hints)
	d.dependsOn = split(a.take(dependsOn), ",")
	d.without = a.without()
	delete(annotations, OwnerKey(s.Name))
	delete(annotations, DigestKey(s.Name))
	a.misspelt()
	if hints != "" {
		annotations[HintsKey(s.Name)] = hints
	}
	if event != "" {
		s.checkEvent(d, event)
		annotations[EventKey(s.Name)] = event
	}
	if rule != "" {
		s.checkRule(d, rule)
		annotations[HealthKey(s.Name)] = rule
	}
	if d.Purge != nil && *d.Purge < d.Item.ApplyOrder {
		s.add("%s: its %s/%s %d is below its %s/%s %d; raise it",
			d.title(), s.Name, purgeOrder, *d.Purge, s.Name, applyOrder, d.Item.ApplyOrder)
	}
	if definesAPI(d.kind) {
		s.checkDefinition(d)
	}
}

// checkConflicts refuses to yield in conflicts that an update does not have.
func (s *set) checkConflicts(d *draft) {
	if d.Item.ConflictPolicy == api.ConflictPolicyFail && d.Item.UpdatePolicy == api.UpdatePolicyReplace {
		s.add("%s: %s %q needs server-side apply; set %s to %s", d.title(), s.Name+"/"+conflictPolicy, d.Item.ConflictPolicy,
			s.Name+"/"+updatePolicy, alternatives([]api.UpdatePolicy{api.UpdatePolicySsaMerge, api.UpdatePolicySsaOverride}))
	}
}

// checkDefinition refuses what would delete, with a definition, all that depends on it.
func (s *set) checkDefinition(d *draft) {
	if d.Purge != nil {
		s.add("%s: %s is not possible for kind %s, because what it contains would be deleted with it; remove the annotation",
			d.title(), s.Name+"/"+purgeOrder, d.Item.Kind)
	}
	if d.Item.UpdatePolicy == api.UpdatePolicyRecreate {
		s.add("%s: %s %q is not possible for kind %s, because what it contains would be deleted with it; set the annotation to %s",
			d.title(), s.Name+"/"+updatePolicy, d.Item.UpdatePolicy, d.Item.Kind,
			alternatives([]api.UpdatePolicy{api.UpdatePolicyReplace, api.UpdatePolicySsaMerge, api.UpdatePolicySsaOverride}))
	}
}

// checkRule refuses a rule about the health of an object that would never be applied.
func (s *set) checkRule(d *draft, rule string) {
	if s.HealthRule == nil {
		return
	}
	if err := s.HealthRule(d.kind, rule); err != nil {
		s.add("%s: annotation %s %w", d.title(), HealthKey(s.Name), err)
	}
}

// asked reads the annotations of one object.
type asked struct {
	set   *set
	draft *draft
	from  map[string]string
}

// take removes an annotation and returns its value.
func (a asked) take(name string) string {
	key := a.set.Name + "/" + name
	value := strings.TrimSpace(a.from[key])
	delete(a.from, key)
	return value
}

func (a asked) refuse(name, value, allowed string) {
	a.set.add("%s: annotation %s/%s is %q; it must be %s", a.draft.title(), a.set.Name, name, value, allowed)
}

// policy returns what an annotation asks for. Without the annotation it is the operator's default.
func policy[P ~string](a asked, name string, otherwise P, deprecated bool, allowed ...P) P {
	value := a.take(name)
	switch {
	case value == "":
		return otherwise
	case value == unset && deprecated:
		a.draft.Warnings = append(a.draft.Warnings, a.draft.title()+": annotation "+a.set.Name+"/"+name+
			` is "default", which is deprecated; remove the annotation`)
		return otherwise
	case !slices.Contains(allowed, P(value)):
		a.refuse(name, value, alternatives(allowed))
		return otherwise
	}
	return P(value)
}

// unlessDefault returns a policy, or nothing if it is the one that has no effect: inventories are small.
func unlessDefault[P ~string](without, value P) P {
	if value == without {
		return ""
	}
	return value
}

// flag reports whether an annotation is "true".
func (a asked) flag(name string) bool {
	switch value := a.take(name); value {
	case "", "false":
		return false
	case "true":
		return true
	default:
		a.refuse(name, value, alternatives([]string{"true", "false"}))
		return false
	}
}

// order returns the wave that an annotation names. Nil means that it names none.
func (a asked) order(name string) *int16 {
	value := a.take(name)
	if value == "" {
		return nil
	}
	n, err := strconv.ParseInt(value, 10, 16)
	if err != nil {
		a.refuse(name, value, "a whole number from -32768 to 32767")
		return nil
	}
	return new(int16(n))
}

// duration returns the time that an annotation names. Zero means that it names none.
func (a asked) duration(name string) time.Duration {
	value := a.take(name)
	if value == "" {
		return 0
	}
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 {
		a.refuse(name, value, `a positive time such as "90s" or "5m"`)
		return 0
	}
	return d
}

func (a asked) hints(list string) health.Hints {
	hints, unknown := health.ParseHints(list)
	for _, hint := range unknown {
		a.set.add("%s: annotation %s/%s has the hint %q; hints are %s", a.draft.title(), a.set.Name, statusHint, hint,
			alternatives([]string{health.HintObservedGeneration, health.HintReadyCondition, health.HintConditions + "=<type>;<type>"}))
	}
	return hints
}

// without returns the classes of implicit edges that are switched off.
func (a asked) without() []class {
	value := a.take(implicitEdges)
	if value == "none" {
		return classes()
	}
	var off []class
	for _, item := range split(value, ",") {
		name, minus := strings.CutPrefix(item, "-")
		if !minus || !slices.Contains(classes(), class(name)) {
			a.refuse(implicitEdges, value, `"none", or a list of what to leave out: "-types", "-namespaces", "-accounts", "-backends"`)
			return nil
		}
		off = append(off, class(name))
	}
	return off
}

// misspelt refuses annotations that are almost ours. Unread, "delete-polcy: orphan" would delete the
// object. Others with the operator's prefix may have a meaning for the operator, and stay.
func (a asked) misspelt() {
	for key := range a.from {
		ours, is := strings.CutPrefix(key, a.set.Name+"/")
		if !is {
			continue
		}
		for _, name := range names() {
			if distance(strings.ToLower(ours), name) <= min(2, len(name)/4) { // of four letters, two make another word
				a.set.add("%s: annotation %s is not known; did you mean %s/%s?", a.draft.title(), key, a.set.Name, name)
			}
		}
	}
}

// distance is how many letters must be put in, left out or replaced to make b of a. It gives up on
// texts whose lengths differ by more than what counts as a slip.
func distance(a, b string) int {
	if len(a) > len(b)+2 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// split cuts a list and leaves out blanks and empty elements.
func split(list, separator string) []string {
	var out []string
	for item := range strings.SplitSeq(list, separator) {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}
