package decide

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/conditions"
	"github.com/trimtab-dev/trimtab/external/internal/record"
)

var update = flag.Bool("update", false, "accept what is written now")

// situation is one that users encounter.
type situation struct {
	name string
	f    Facts
	t    Texts
}

// of returns the facts of a situation: a resource of generation 3 that was ready for it.
func of(change ...func(*Facts)) Facts {
	f := given(change...)
	if f.Generation == 0 {
		f.Generation = 3
	}
	return f
}

func readyFor(g int64) func(*Facts)            { return func(f *Facts) { f.ReadyFor = g } }
func depends(f *Facts)                         { f.Depends = true }
func lastTry(f *Facts)                         { f.LastTry = true }
func ignored(f *Facts)                         { f.Differs.Ignored = true }
func reportedBefore(t LastReport) func(*Facts) { return func(f *Facts) { f.LastReport = t } }
func rival(r Rival) func(*Facts)               { return func(f *Facts) { f.Seen.Rival = r } }
func refusedAs(c Class) func(*Facts)           { return func(f *Facts) { f.RefusedAs = c } }
func andDiffers(d Differs) func(*Facts)        { return func(f *Facts) { f.Differs = d } }

// words returns the texts of a stream; change adds to them.
func words(change ...func(*Texts)) Texts {
	t := Texts{
		Resource: `stream "orders"`, ID: "orders", Phase: "Available", Remedy: "delete the object and create it again",
		Paused:      PausedText(PauseChanges, time.Time{}),
		GaveUp:      "gave up after 5 retries, change the object to try again",
		Holder:      "Stream shop/older",
		AdoptAlways: AdoptBy(api.AdoptionAlways),
		AdoptFrom:   AdoptBy(api.AdoptionFrom + "1f0c"),
		MadeAt:      "nats://east:4222", Here: "nats://west:4222", OwnerCluster: "c7",
	}
	for _, f := range change {
		f(&t)
	}
	return t
}

func following(t *Texts)             { t.Operation, t.Limit = `operation "op-1"`, "1h" }
func granting(g Grant) func(*Texts)  { return func(t *Texts) { t.Grant = g } }
func called(s string) func(*Texts)   { return func(t *Texts) { t.Resource = s } }
func saying(s string) func(*Texts)   { return func(t *Texts) { t.Error = s } }
func waitsFor(s string) func(*Texts) { return func(t *Texts) { t.Waiting = s } }
func external(r, s string) func(*Texts) {
	return func(t *Texts) { t.ExternalReason, t.External = r, s }
}
func owned(by, uid string) func(*Texts) { return func(t *Texts) { t.Owner, t.OwnerUID = by, uid } }
func wants(s string) func(*Texts) {
	return func(t *Texts) { t.Changes, t.InPlace, t.Recreate, t.Unsupported = s, s, s, s }
}

const (
	overlap  = "subjects overlap with an existing stream (10065)"
	bigger   = "spec.maxBytes 1024 → 2048"
	notThere = "Stream shop/orders: it does not exist"

	// brokenPass is the situation that comes to no decision.
	brokenPass = "the Kubernetes API failed during the pass"
)

// chapter is a section of docs/status.md.
type chapter struct {
	title      string
	situations []situation
}

// chapters are in the order of a resource's life.
func chapters() []chapter {
	nothing, lost := creation(CreationNone), missing
	return []chapter{
		{"Creation and adoption", beginnings(nothing)},
		{"In sync, updating, paused", settledOnes()},
		{"Failures", failures()},
		{"Refusals, and who owns the resource", refusals(nothing)},
		{"Loss", losses(lost)},
		{"Deletion of the object", ends()},
	}
}

// situations returns those of all chapters.
func situations() []situation {
	var all []situation
	for _, c := range chapters() {
		all = append(all, c.situations...)
	}
	return all
}

func beginnings(nothing func(*Facts)) []situation {
	byMark, unsure := identity(IdentityMark), creation(CreationPossible)
	return []situation{
		{"a new object: the first observation", of(nothing, recorded(record.MarkerNone), notObserved), words()},
		{"a dependency does not exist", of(unready, nothing, notObserved, depends), words(called(`consumer "billing"`), waitsFor(notThere))},
		{"the resource works, but a dependency is not ready", of(unready, depends, readyFor(3)), words(called(`consumer "billing"`), waitsFor("Stream shop/orders: it is not ready"))},
		{"the Ready condition of a dependency was not written by its operator", of(unready, nothing, notObserved, depends), words(called(`consumer "billing"`), waitsFor("Stream shop/orders: it "+Unverified))},
		{"the API is not ready for the call", of(failed(ActionCreate, ClassNotReady)), words(saying("the account is being set up"))},
		{"about to create, before the record is durable", of(missing, nothing, recorded(record.MarkerNone)), words()},
		{"creating", of(missing, nothing), words()},
		{"the API is creating the resource", of(phase(PhaseCreating)), words()},
		{"created, but not marked yet", of(owner(OwnerRecorded), func(f *Facts) { f.CanMark, f.MarkLater = true, true }), words()},
		{"the API assigned an id of its own", of(troubled(TroubleGiven)), words(func(t *Texts) { t.ID, t.Named = "i-0b1c", "orders" })},
		{"a create request may still take effect", of(missing, creation(CreationPossible), since(time.Second)), words()},
		{"created, and not visible yet", of(missing, creation(CreationCalled), since(time.Second)), words()},
		{"an operation is in progress", of(op(OpRunning, ActionCreate), polled), words(following)},
		{"the object is being deleted, and the API is still creating the resource", of(deleting, missing, op(OpRunning, ActionCreate), polled), words(following)},
		{"the operation is past its deadline", of(op(OpOverdue, ActionCreate), polled), words(following)},
		{"the operator was killed during a create: it observes by name", of(unsure, notObserved), words()},
		{"the answer to a create was lost: it searches for the mark", of(byMark, unsure, unknownID), words()},
		{"several resources carry the mark", of(byMark, unsure, unknownID, found(FoundMany)), words(func(t *Texts) { t.Found = `: "i-1" and "i-2"` })},
		{"a resource that may have been created cannot be found", of(identity(IdentityNone), unsure, unknownID), words()},
		{"the record cannot be read", of(troubled(TroubleCorrupt), notObserved), words(func(t *Texts) {
			t.Trouble = "annotation trimtab.dev/external cannot be read (it is cut off); nothing is created or deleted until it is restored"
		})},
		{"adopting a resource that matches the spec", of(owner(OwnerNobody), adoption(AdoptIfIdentical), nothing), words()},
		{"adopted: setting the mark", of(owner(OwnerRecorded), func(f *Facts) { f.CanMark = true }), words()},
		{"connection details are published", of(unpublished), words()},
		{"the Secret for connection details belongs to somebody else", of(unpublishing(ClassConflict)), words(func(t *Texts) {
			t.PublishError = "Secret shop/orders exists and does not belong to this object; delete it, or name another one"
		})},
		{"a connection detail that only the create returns is lost", of(incomplete), words(func(t *Texts) { t.Lost = `Secret shop/orders has no key "token"` })},
	}
}

func settledOnes() []situation {
	return []situation{
		{"in sync", of(), words()},
		{"in sync except for differences that are ignored", of(ignored), words(func(t *Texts) { t.Ignored = "spec.mirrorDirect is false, wanted true" })},
		{"in sync, but an annotation is not valid", of(), words(func(t *Texts) {
			t.Problems = InvalidAdoption("yes")
		})},
		{"the API works on it and does not say what it does", of(phase(PhaseInProgress)), words(external("", "40 % of the data are copied"))},
		{"what follows from it takes its time", of(unfinished(ClassNotReady)), words(func(t *Texts) { t.FinishError = "Job shop/import is running" })},
		{"degraded", of(phase(PhaseDegraded)), words(external("MirrorFails", `cannot copy from stream "nowhere": not found`))},
		{"a new spec is applied", of(inPlace, readyFor(2)), words(wants(bigger))},
		{"the update was accepted but is not visible yet", of(inPlace, did(Did{Update: true}), readyFor(2)), words(wants(bigger))},
		{"the change requires a new resource: the old one is deleted", of(recreate, did(Did{Delete: true}), readyFor(2)), words(wants(`spec.storage "file" → "memory"`))},
		{"paused, in sync", of(paused(PauseChanges), reportedBefore(LastReport{State: StateSucceeded}), readyFor(3)), words()},
		{"paused, after a restart, and the API does not answer", of(paused(PauseChanges), scoped(ScopeDown), notObserved, creation(CreationPossible), readyFor(3)), words()},
		{"paused, with a change pending", of(paused(PauseChanges), inPlace, reportedBefore(LastReport{State: StateSucceeded}), readyFor(2)), words(wants(bigger))},
	}
}

func failures() []situation {
	refused := saying("connection refused")
	return []situation{
		{"the API does not answer, spec unchanged", of(failed(ActionObserve, ClassTransient), readyFor(3)), words(refused)},
		{"the API does not answer, new spec pending", of(failed(ActionObserve, ClassTransient), readyFor(2)), words(refused)},
		{"the API does not answer, and nothing was ever observed", of(failed(ActionObserve, ClassTransient)), words(refused)},
		{"the API does not answer while it creates the resource", of(failed(ActionObserve, ClassTransient), reportedBefore(LastReport{State: StateCreating, Creating: true})), words(refused)},
		{"the observation times out", of(failed(ActionObserve, ClassTransient), timeout, readyFor(3)), words(saying("context deadline exceeded"))},
		{"the credentials are refused", of(failed(ActionObserve, ClassDenied), readyFor(3)), words(saying("Authorization Violation"))},
		{"no client can be created", of(scoped(ScopeUnconnectable), notObserved), words(func(t *Texts) { t.Connect = "no servers available" })},
		{"the API answers no object", of(scoped(ScopeDown), notObserved, readyFor(3)), words(func(t *Texts) { t.Connect = "connection refused" })},
		{"the API answers no object, and this one has tried", of(scoped(ScopeDown), notObserved, readyFor(3), reportedBefore(LastReport{State: StateFailed, Failed: true, ObserveFailure: "ObserveFailed"})), words(func(t *Texts) {
			t.Failed = `cannot observe stream "orders": connection refused; retrying`
		})},
		{"no object can connect", of(scoped(ScopeDown), notObserved, readyFor(3)), words(func(t *Texts) { t.Shut = "connect: the certificate has expired" })},
		{"a call has not returned", of(scoped(ScopeOccupied), notObserved, readyFor(3)), words(func(t *Texts) {
			t.Hangs = "the driver has not returned from Update after its deadline; nothing is called for this object until it does"
		})},
		{"the API throttles requests", of(scoped(ScopeThrottled), notObserved, readyFor(3), reportedBefore(LastReport{State: StateSucceeded})), words()},
		{"the create fails, and may succeed later", of(failed(ActionCreate, ClassTransient)), words(saying("insufficient resources (10023)"))},
		{"the update fails, and may succeed later", of(failed(ActionUpdate, ClassTransient), andDiffers(Differs{InPlace: true}), readyFor(2)), words(saying("insufficient resources (10023)"), wants(bigger))},
		{"it is unknown whether the update took effect", of(failed(ActionUpdate, ClassAmbiguous), andDiffers(Differs{InPlace: true}), readyFor(2)), words(saying("connection reset"), wants(bigger))},
		{"no retry is left", of(failed(ActionCreate, ClassTransient), lastTry), words(saying("insufficient resources (10023)"))},
		{brokenPass, of(), words(saying("etcdserver: request timed out"))},
	}
}

func refusals(nothing func(*Facts)) []situation {
	return []situation{
		{"the create is refused", of(failed(ActionCreate, ClassInvalid)), words(saying(overlap))},
		{"it was refused, and nothing has changed since", of(missing, nothing, alreadyRefused(ActionCreate), refusedAs(ClassInvalid)), words(func(t *Texts) { t.Refusal = overlap })},
		{"the create is refused for good", of(failed(ActionCreate, ClassTerminal)), words(saying("the account is closed"))},
		{"a new spec is refused", of(inPlace, alreadyRefused(ActionUpdate), refusedAs(ClassInvalid), readyFor(2)), words(wants(bigger), func(t *Texts) { t.Refusal = overlap })},
		{"updates are accepted and change nothing", of(inPlace, updates(3), readyFor(2)), words(wants(bigger))},
		{"a deleted resource is said to be gone and is not", of(recreate, futileDeletes(3), readyFor(2)), words(wants(`spec.storage "file" → "memory"`))},
		{"a recreated resource has the same difference", of(recreate, updates(3), readyFor(2)), words(wants(`spec.storage "file" → "memory"`))},
		{"the change is not supported", of(unsupported, readyFor(2)), words(wants(`spec.retention "limits" → "workqueue"`))},
		{"the spec yields another name", of(troubled(TroubleRenamed)), words(func(t *Texts) { t.Named = "invoices" })},
		{"the spec yields no valid name", of(troubled(TroubleName), notObserved), words(func(t *Texts) { t.Trouble = `spec.name: "a b" contains a blank; remove it` })},
		{"it may not be created", of(missing, nothing, allowed(false, true, true)), words(granting(Grant{Author: "cud", Operator: "cud", Annotation: "ud"}))},
		{"it may not be updated", of(inPlace, allowed(true, false, true), readyFor(2)), words(wants(bigger), granting(Grant{Author: "cud", Operator: "cd", Namespace: "shop"}))},
		{"it may not be recreated", of(recreate, allowed(true, true, false), readyFor(2)), words(wants(`spec.storage "file" → "memory"`), granting(Grant{Author: "cud", Operator: "cud", Annotation: "cu"}))},
		{"the operator never updates", of(inPlace, allowed(true, false, true), readyFor(2)), words(wants(bigger), granting(Grant{Author: "cd", Operator: "cud"}))},
		{"not ours: no mark", of(owner(OwnerNobody)), words()},
		{"not ours: another object has it", of(owner(OwnerOther)), words(owned("Stream shop/orders", ""))},
		{"not ours: of an earlier object", of(owner(OwnerNamesake)), words(owned("Stream shop/orders", "1f0c"))},
		{"not ours: of another cluster", of(owner(OwnerForeign)), words(owned("Stream shop/orders", "1f0c"))},
		{"not ours: an older object names it, too", of(owner(OwnerNobody), rival(RivalHolds)), words()},
		{"two objects have a record of the resource", of(owner(OwnerRecorded), rival(RivalEqual)), words()},
		{"created at another endpoint", of(troubled(TroubleEndpoint)), words()},
		{"the resource has failed", of(phase(PhaseFailed)), words(external("QuotaExceeded", "10 of 10 streams are in use"))},
		{"the resource has failed and may recover", of(phase(PhaseFailed), recoverable), words(func(t *Texts) { t.Phase = "Failed" })},
	}
}

func losses(lost func(*Facts)) []situation {
	return []situation{
		{"deleted outside the operator", of(lost), words()},
		{"missing after a restart: lost, or never created", of(lost, creation(CreationSettled)), words()},
		{"missing when the operator came back", of(lost, creation(CreationSettled)), words()},
		{"being deleted outside the operator", of(phase(PhaseDeleting)), words()},
		{"recreated after our own deletion", of(lost, accepted), words()},
	}
}

func ends() []situation {
	role := called(`role "shop"`)
	return []situation{
		{"deleted: the call is made", of(deleting), words()},
		{"deleted: the API is deleting the resource", of(deleting, phase(PhaseDeleting)), words()},
		{"the delete is refused for now", of(deleting, failed(ActionDelete, ClassConflict)), words(role, saying("it owns database orders"))},
		{"the delete must wait", of(deleting, failed(ActionDelete, ClassNotReady)), words(role, saying("a backup is running"))},
		{"the delete fails", of(deleting, failed(ActionDelete, ClassTransient)), words(role, saying("connection refused"))},
		{"deleted, and the API does not answer", of(deleting, failed(ActionObserve, ClassTransient)), words(saying("connection refused"))},
		{"deleted, and there is no client", of(deleting, scoped(ScopeUnconnectable), notObserved), words(func(t *Texts) { t.Connect = "no servers available" })},
		{"deleted, and it is unknown what was created", of(deleting, identity(IdentityNone), creation(CreationPossible), unknownID), words()},
		{"deleted, and the assigned id is not found", of(deleting, missing, creation(CreationPossible), troubled(TroubleGiven)), words(func(t *Texts) { t.ID = "i-0b1c" })},
		{"deleted, and a refused create may have created it", of(deleting, creation(CreationNone), doubtful, owner(OwnerNobody)), words()},
		{"deleted, with an invalid deletion policy", of(deleting, unclear), words(func(t *Texts) {
			t.Problems = InvalidDeletion("keep")
		})},
		{"deletion is paused", of(deleting, paused(PauseAll)), words(func(t *Texts) {
			t.Paused = PausedText(PauseAll, time.Time{})
		})},
		{"deleted, and a create may still take effect", of(deleting, missing, creation(CreationPossible), since(time.Second)), words()},
		{"orphaned: the mark is removed", of(deleting, orphan, canUnmark), words()},
		{"never created", of(deleting, creation(CreationNone), notObserved), words()},
		{"gone: the finalizer is removed", of(deleting, missing), words()},
	}
}

// decide returns the decision on s, and what is reported to users.
func (s situation) decide() (Decision, conditions.Report) {
	if s.name == brokenPass {
		d := Decision{State: StateFailed, Reason: ReasonReconcileFailed, Wake: WakeBackoff, Show: Show{Failed: ShowTrue}}
		s.f.Seen, s.f.ReadyFor = Seen{}, 3
		return d, Report(d, s.f, s.t)
	}
	d := Next(s.f)
	return d, Report(d, s.f, s.t)
}

const preface = `# What the status says

This page is about kinds that stand for external resources. Components have
[states of their own](components.md#states-and-conditions).

    $ kubectl get streams
    NAME     READY   STATE       AGE   MESSAGE
    orders   True    Succeeded   5m    stream "orders" matches the spec

READY is the status of the condition ` + "`Ready`" + `:

| READY | Meaning |
|---|---|
| True | the resource works. The condition's ` + "`observedGeneration`" + ` is the generation of the spec that it last matched, so it also tells whether the current spec is applied |
| False | the resource does not work or does not exist |
| Unknown | it is not known whether the resource works, for example because nothing has been observed yet |

STATE is ` + "`status.state`" + `:

| State | Meaning |
|---|---|
| Pending | something else must happen first: a dependency, an observation, a call that succeeds |
| Creating, Updating, Recreating | a change of the resource is in progress |
| Verifying | the operator checks what exists |
| Completing | outputs for other objects are being published |
| Succeeded | the resource matches the spec |
| Failed | something failed; the message says whether it is retried |
| Terminating | the object is being deleted |

MESSAGE is ` + "`status.message`" + `. It says what is happening and, if a person has to act, what to do.

The other conditions are True while their name applies: ` + "`Reconciling`" + ` and ` + "`Stalled`" + `, which
[kstatus](https://github.com/kubernetes-sigs/cli-utils/tree/master/pkg/kstatus), Argo CD and Flux read, ` +
	"`Creating`, `Updating`, `Deleting`, `Failed`, `Paused`" + ` and ` + "`PolicyInvalid`" + `. ` + "`DependenciesReady`" + ` is False while a
dependency is not ready. Their reason is that of ` + "`Ready`" + ` in most cases. An event with this reason and
message is recorded, and a line is logged, when the situation is new.

` + "`Creating`, `Updating` and `Failed`" + ` tell the history as well: an object has none of them before it is first true, and
keeps it as False afterwards. An object without ` + "`Failed`" + ` has no failure on record. A create or an update that ended within
one pass leaves its condition, too. Do not wait for ` + "`Failed=False`" + `, which may never come; wait for ` + "`Ready`" + `.
`

const reasonsPreface = `
## Reasons

Severity: nothing to do (*routine*), usually ends by itself (*passing*), somebody has to act (*person*).

| Reason | Severity | Means | Way out |
|---|---|---|---|
`

const situationsPreface = `
## Situations

The generation of the spec is 3. "True (2)" means that the resource works and last matched generation 2.
Row is the row of the [decision table](decisions.md). A test writes these tables with the function that
production uses.
`

// TestStatusTable checks that docs/status.md is what the functions return, and that
// testdata/status.txt has all conditions, events and log lines.
func TestStatusTable(t *testing.T) {
	var page, whole strings.Builder
	page.WriteString(preface)
	page.WriteString(reasonsPreface)
	for _, m := range append(meanings(), failureMeanings()...) {
		name := "`" + string(m.reason) + "`"
		if slices.ContainsFunc(failureMeanings(), func(f meaning) bool { return f.reason == m.reason }) {
			name = "the call, and `" + string(m.reason) + "`, as in `Create" + string(m.reason) + "`"
		}
		fmt.Fprintf(&page, "| %s | %s | %s | %s |\n", name, m.severity, m.sentence, m.remedy)
	}
	page.WriteString(situationsPreface)
	for _, c := range chapters() {
		fmt.Fprintf(&page, "\n### %s\n\n| Situation | READY | STATE | Reason | MESSAGE | kstatus | Row |\n|---|---|---|---|---|---|---|\n", c.title)
		for _, s := range c.situations {
			d, r := s.decide()
			page.WriteString(line(s, d, r))
			fmt.Fprintf(&whole, "### %s\n\n%s\n", sentence(s.name), shownAs(d, r, s.f))
		}
	}
	compareWithFile(t, "../../../docs/status.md", page.String(), "TestStatusTable")
	compareWithFile(t, "testdata/status.txt", whole.String(), "TestStatusTable")
}

// line is the line of a situation in docs/status.md.
func line(s situation, d Decision, r conditions.Report) string {
	ready := string(r.Ready().Status)
	if r.Ready().Status == metav1.ConditionTrue && r.Ready().ObservedGeneration != s.f.Generation {
		ready += fmt.Sprintf(" (%d)", r.Ready().ObservedGeneration)
	}
	return fmt.Sprintf("| %s | %s | %s | `%s` | %s | %s | %s |\n", s.name, ready, r.State, r.Reason, r.Message, kstatus(r, s.f), d.Row)
}

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// shownAs renders a report as users see it.
func shownAs(d Decision, r conditions.Report, f Facts) string {
	var b strings.Builder
	ready := r.Ready()
	columns := []string{string(ready.Status), r.State, "5m", r.Message}
	fmt.Fprintf(&b, "    %-8s%-13s%-6s%s\n", "READY", "STATE", "AGE", "MESSAGE")
	fmt.Fprintf(&b, "    %-8s%-13s%-6s%s\n\n", columns[0], columns[1], columns[2], columns[3])
	var conditions []string
	for _, c := range r.Conditions {
		text := fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason)
		switch {
		case c.Type == api.ConditionReady && c.Status == metav1.ConditionTrue:
			text = fmt.Sprintf("Ready (%d)", c.ObservedGeneration)
			if c.Message != r.Message {
				text += fmt.Sprintf(" \"%s\"", c.Message)
			}
		case c.Status == metav1.ConditionTrue:
			text = c.Type + " " + c.Reason
			if c.Message != r.Message && c.Message != "" {
				text += fmt.Sprintf(" \"%s\"", c.Message)
			}
		case c.Status == metav1.ConditionFalse && c.Type != api.ConditionReady && c.Type != api.ConditionDependenciesReady:
			continue
		}
		conditions = append(conditions, text)
	}
	fmt.Fprintf(&b, "- conditions: %s\n", strings.Join(conditions, ", "))
	fmt.Fprintf(&b, "- kstatus: %s; %s, then %s\n", kstatus(r, f), d.Row, d.Action)
	fmt.Fprintf(&b, "- event: %s %s\n", r.Event.Type(), r.Event.Reason)
	fmt.Fprintf(&b, "- log: `%s` reason=%s to=%s\n", r.Message, r.Reason, r.State)
	return b.String()
}

// kstatus applies the rules of sigs.k8s.io/cli-utils to a custom resource.
func kstatus(r conditions.Report, f Facts) string {
	if f.Deleting {
		return "Terminating"
	}
	is := map[string]metav1.ConditionStatus{}
	for _, c := range r.Conditions {
		is[c.Type] = c.Status
	}
	switch {
	case is[api.ConditionReconciling] == metav1.ConditionTrue:
		return "InProgress"
	case is[api.ConditionStalled] == metav1.ConditionTrue:
		return "Failed"
	case is[api.ConditionReady] == metav1.ConditionTrue:
		return "Current"
	}
	return "InProgress"
}

// TestOccurred: a condition is shown from its first occurrence on.
func TestOccurred(t *testing.T) {
	for name, test := range map[string]struct {
		facts Facts
		want  string
	}{
		"nothing occurred":                 {of(), "+Ready"},
		"it was created":                   {of(func(f *Facts) { f.Occurred.Creating = true }), "+Ready -Creating"},
		"it was updated":                   {of(func(f *Facts) { f.Occurred.Updating = true }), "+Ready -Updating"},
		"it failed":                        {of(func(f *Facts) { f.Occurred.Failed = true }), "+Ready -Failed"},
		"it fails for the first time":      {of(failed(ActionObserve, ClassTransient)), "?Ready +Failed +Reconciling"},
		"it is updated for the first time": {of(reportedBefore(LastReport{Updating: true}), phase(PhaseInProgress)), "-Ready +Updating +Reconciling"},
		"it is being deleted":              {of(notObserved, func(f *Facts) { f.Deleting = true }), "?Ready +Deleting +Reconciling"},
	} {
		t.Run(name, func(t *testing.T) {
			d := Next(test.facts)
			r := Report(d, test.facts, words())
			var got []string
			for _, kind := range []string{"Ready", "Creating", "Updating", "Deleting", "Failed", "Reconciling", "Stalled"} {
				if c := meta.FindStatusCondition(r.Conditions, kind); c != nil {
					got = append(got, map[metav1.ConditionStatus]string{metav1.ConditionTrue: "+", metav1.ConditionFalse: "-", metav1.ConditionUnknown: "?"}[c.Status]+kind)
				}
			}
			if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("row %d (-want +got):\n%s", d.Row, diff)
			}
		})
	}
}

// TestStatusTableIsWhole checks that the table has each row of Next, and at least forty
// situations.
func TestStatusTableIsWhole(t *testing.T) {
	rows := map[Row]bool{}
	names := map[string]bool{}
	for _, s := range situations() {
		d, _ := s.decide()
		rows[d.Row] = true
		if names[s.name] {
			t.Errorf("two situations are named %q", s.name)
		}
		names[s.name] = true
	}
	for row := Row(1); row <= 32; row++ {
		if !rows[row] {
			t.Errorf("%s is in no situation", row)
		}
	}
	if len(names) < 40 {
		t.Errorf("%d situations, want 40", len(names))
	}
}

// TestReasonsAreRegistered checks that each reason that a decision can give has a meaning, which
// agrees with it on whether somebody has to act.
func TestReasonsAreRegistered(t *testing.T) {
	known := map[Reason]severity{}
	for _, m := range slices.Concat(meanings(), futureMeanings()) {
		if m.sentence == "" || m.remedy == "" && m.severity != routine {
			t.Errorf("%s lacks a sentence or a way out", m.reason)
		}
		known[m.reason] = m.severity
	}
	for _, a := range []Action{ActionObserve, ActionCreate, ActionUpdate, ActionDelete, ActionMark, ActionUnmark, ActionPublish, ActionFinish, ActionPoll, ActionCancel} {
		for _, m := range failureMeanings() {
			known[callName(a)+m.reason] = m.severity
		}
	}
	rng := rand.New(rand.NewPCG(20260102, 3))
	for range 100_000 {
		f := randomFacts(rng)
		d := Next(f)
		is, ok := known[d.Reason]
		if !ok {
			t.Fatalf("%s gives reason %s, which is not registered in reasons.go; facts %+v", d.Row, d.Reason, f)
		}
		if d.Action == ActionStop && is != person && !f.Last.Timeout {
			t.Fatalf("%s stops for %s, which is registered as %s", d.Row, d.Reason, is)
		}
	}
	for _, s := range situations() {
		if d, _ := s.decide(); known[d.Reason] == "" {
			t.Errorf("%q: reason %s is not registered", s.name, d.Reason)
		}
	}
}
