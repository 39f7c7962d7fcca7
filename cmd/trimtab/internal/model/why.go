package model

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/api"
)

// Explanation is why an object is not ready.
type Explanation struct {
	Object Object `json:"object"`
	// Ready: there is nothing to explain.
	Ready bool `json:"ready"`
	// Chain leads from the object to the root cause, which its last link has. Each one waits for the next.
	Chain []Link `json:"chain,omitempty"`
	// Cause is the root cause.
	Cause *Cause `json:"cause,omitempty"`
	// Cleared is what was looked at and is not the cause.
	Cleared []string `json:"cleared,omitempty"`
	// Unseen is what could not be looked at, and why.
	Unseen []string `json:"unseen,omitempty"`
}

// Link is an object of a chain, and why it is not ready.
type Link struct {
	Object
	Why string `json:"why"`
}

// Cause is what has to change for an object to become ready.
type Cause struct {
	// Code identifies the kind of cause.
	Code Code `json:"code"`
	// Text says what is wrong, and Evidence by what that is known.
	Text     string   `json:"text"`
	Evidence []string `json:"evidence,omitempty"`
	// Remedy says what to do.
	Remedy string `json:"remedy"`
}

// Code identifies a kind of cause.
type Code string

// The kinds of causes.
const (
	Absent        Code = "Absent"        // an object does not exist
	OperatorAway  Code = "OperatorAway"  // nobody works on the object
	NotObserved   Code = "NotObserved"   // the operator has not seen the present spec
	Paused        Code = "Paused"        // somebody has asked to leave the object alone
	Finalizer     Code = "Finalizer"     // an object that is being deleted waits for whoever has put a finalizer on it
	Denied        Code = "Denied"        // a permission is missing
	Quota         Code = "Quota"         // a limit of a namespace or of another system is reached
	Refused       Code = "Refused"       // an API server or an admission webhook refuses an object
	Image         Code = "Image"         // an image cannot be pulled
	Crash         Code = "Crash"         // a container ends again and again
	Unschedulable Code = "Unschedulable" // no node takes a Pod
	Unready       Code = "Unready"       // a container runs and its readiness probe fails
	Claim         Code = "Claim"         // a claim has no volume
	Failed        Code = "Failed"        // a Job, or another thing that does not try again, has failed
	Told          Code = "Told"          // the object's status says it
	Waiting       Code = "Waiting"       // nothing is known to be wrong; it takes its time
)

// asking is the state of one question.
type asking struct {
	*Cluster

	visited map[Ref]bool
	chain   []Link
	cleared []string
}

// Why explains why an object is not ready. It is an error if the object does not exist or cannot be read.
func (c *Cluster) Why(ctx context.Context, r Ref) (Explanation, error) {
	o := c.object(ctx, r, "")
	if o.live == nil {
		if o.missing {
			return Explanation{}, fmt.Errorf("%s %s does not exist", r.Kind, named(r))
		}
		return Explanation{}, fmt.Errorf("%s %s cannot be read: %s", r.Kind, named(r), strings.Join(c.Unseen(), "; "))
	}
	a := &asking{Cluster: c, visited: map[Ref]bool{}}
	e := Explanation{Object: o}
	if e.Ready = o.Ready == metav1.ConditionTrue || o.Ready == ""; !e.Ready {
		cause := a.walk(ctx, o)
		e.Cause, e.Chain, e.Cleared = &cause, a.chain, a.cleared
	}
	e.Unseen = c.Unseen()
	return e, nil
}

// walk returns the root cause of an object that is not ready, and notes the way to it.
func (a *asking) walk(ctx context.Context, o Object) Cause {
	a.visited[o.Ref] = true
	for _, check := range []func(context.Context, Object) *Cause{
		a.absent, a.away, a.paused, a.unobserved, a.deleting, a.ofPod, a.ofClaim, a.created, a.lower, a.told,
	} {
		at := len(a.chain)
		a.chain = append(a.chain, Link{Object: o})
		if cause := check(ctx, o); cause != nil {
			if a.chain[at].Why == "" {
				a.chain[at].Why = cause.Text
			}
			return *cause
		}
		a.chain = a.chain[:at]
	}
	a.chain = append(a.chain, Link{Object: o, Why: orElse(o.Message, "is not ready yet")})
	reason, note := a.warning(ctx, o.live)
	if note != "" {
		return Cause{Code: Told, Text: note, Evidence: []string{"event " + reason}, Remedy: a.remedyOf(o)}
	}
	return Cause{Code: Waiting, Text: orElse(o.Message, "is not ready yet"), Remedy: "wait; nothing is known to be wrong"}
}

// behind continues with an object that another one waits for.
func (a *asking) behind(ctx context.Context, why string, next Object) *Cause {
	a.chain[len(a.chain)-1].Why = why
	cause := a.walk(ctx, next)
	return &cause
}

func (a *asking) absent(_ context.Context, o Object) *Cause {
	if !o.missing {
		return nil
	}
	return &Cause{Code: Absent, Text: fmt.Sprintf("%s %s does not exist", o.Kind, named(o.Ref)), Remedy: "create it, or correct the name where it is named"}
}

func (a *asking) paused(_ context.Context, o Object) *Cause {
	if o.Paused == "" {
		a.clear(o, "not paused")
		return nil
	}
	return &Cause{
		Code: Paused, Text: "is paused", Evidence: []string{fmt.Sprintf("annotation %s: %s", api.AnnotationPaused, o.Paused)},
		Remedy: a.Command("annotate", o.Ref, api.AnnotationPaused+"-"),
	}
}

// unobserved: the operator has not looked at the present spec.
func (a *asking) unobserved(_ context.Context, o Object) *Cause {
	if o.live == nil || !ofOperator(o.gvk().Group) {
		return nil
	}
	seen, now := statusOf(o.live).ObservedGeneration, o.live.GetGeneration()
	if seen >= now || o.Deleting && seen > 0 && seen >= now-1 { // a deletion counts as a generation
		a.clear(o, fmt.Sprintf("generation %d was observed", now))
		return nil
	}
	text := fmt.Sprintf("generation %d was not observed yet; the status is of generation %d", now, seen)
	if seen == 0 {
		text = "no operator has observed it"
	}
	return &Cause{Code: NotObserved, Text: text, Remedy: fmt.Sprintf("look whether an operator of %s runs, and at its log", o.Kind)}
}

// deleting: somebody's finalizer keeps it.
func (a *asking) deleting(ctx context.Context, o Object) *Cause {
	if !o.Deleting {
		return nil
	}
	text := o.Message
	if cause := a.named(ctx, o, text); cause != nil {
		return cause
	}
	finalizers := o.live.GetFinalizers()
	if slices.Contains(finalizers, metav1.FinalizerDeleteDependents) {
		for _, owned := range a.below(ctx, o.live) {
			if !a.visited[owned.Ref] {
				return a.behind(ctx, fmt.Sprintf("is deleted after what it owns, such as %s", owned.Ref), owned)
			}
		}
	}
	cause := &Cause{
		Code: Finalizer, Text: fmt.Sprintf("is being deleted for %s and waits for finalizer %s", a.lasting(*o.live.GetDeletionTimestamp()), strings.Join(finalizers, ", ")),
		Remedy: "whoever has put the finalizer there has to remove it; what it protects: " + a.Verb("unstick", o.Ref),
	}
	if text != "" {
		cause.Evidence = append(cause.Evidence, "status: "+text)
	}
	if len(finalizers) == 0 && o.Kind == "Namespace" {
		cause.Text = "is being deleted and has objects that are not deleted yet"
	}
	return cause
}

// lower: something that the object names or is made of is not ready.
func (a *asking) lower(ctx context.Context, o Object) *Cause {
	if o.live == nil {
		return nil
	}
	s := statusOf(o.live)
	texts := []string{s.Message}
	for _, c := range s.Conditions {
		if c.Status != metav1.ConditionTrue {
			texts = append(texts, c.Message)
		}
	}
	for _, text := range texts {
		if cause := a.named(ctx, o, text); cause != nil {
			return cause
		}
	}
	for _, next := range a.below(ctx, o.live) {
		if rank(next) < 2 && !a.visited[next.Ref] {
			return a.behind(ctx, fmt.Sprintf("%s is not ready", next.Ref), next)
		}
	}
	return nil
}

// mention finds what may be objects in a message: a kind and a name, and maybe a namespace before the name.
var mention = regexp.MustCompile(`\b([A-Z][A-Za-z0-9]+) "?((?:[a-z0-9][-a-z0-9.]*/)?[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?)"?`)

// named continues with an object that a message names, if that is absent or not ready.
func (a *asking) named(ctx context.Context, o Object, text string) *Cause {
	for _, m := range mention.FindAllStringSubmatch(text, -1) {
		kind, ok := a.kindOf(m[1], o.gvk().Group)
		if !ok {
			continue
		}
		namespace, name := o.Namespace, m[2]
		if before, after, has := strings.Cut(m[2], "/"); has {
			namespace, name = before, after
		}
		if !kind.namespaced {
			namespace = ""
		}
		r := Ref{kind.GroupVersion().String(), kind.Kind, namespace, name}
		if a.visited[r] {
			continue
		}
		next := a.object(ctx, r, "named")
		if next.missing && !strings.Contains(text, "not exist") && !strings.Contains(text, "not found") {
			continue // the name of something else, or of what is to be made
		}
		if rank(next) < 2 {
			return a.behind(ctx, text, next)
		}
	}
	return nil
}

// told: the object itself says what is wrong.
func (a *asking) told(_ context.Context, o Object) *Cause {
	if o.live == nil || !ofOperator(o.gvk().Group) || o.Message == "" {
		return nil
	}
	s := statusOf(o.live)
	stalled := condition(s.Conditions, api.ConditionStalled)
	code, evidence := Told, []string(nil)
	if stalled != nil && stalled.Status == metav1.ConditionTrue {
		evidence = append(evidence, fmt.Sprintf("condition Stalled (%s): it is not tried again before something changes", stalled.Reason))
	} else if o.Reason != "" {
		evidence = append(evidence, fmt.Sprintf("condition Ready is %s (%s) for %s", o.Ready, o.Reason, a.lasting(o.Since)))
	}
	if words := codeOf(o.Reason + " " + o.Message); words != "" {
		code = words
	}
	if reconciling := condition(s.Conditions, api.ConditionReconciling); code == Told && reconciling != nil && condition(s.Conditions, api.ConditionFailed) == nil {
		if strings.HasPrefix(o.Reason, "Creating") || strings.HasPrefix(o.Reason, "Updating") || strings.HasPrefix(o.Reason, "Deleting") {
			code = Waiting
		}
	}
	return &Cause{Code: code, Text: o.Message, Evidence: evidence, Remedy: a.remedyOf(o)}
}

// codeOf returns the kind of cause that the words of another system stand for.
func codeOf(text string) Code {
	text = strings.ToLower(text)
	for _, words := range []struct {
		code Code
		any  []string
	}{
		{Quota, []string{"quota", "limit exceeded", "too many requests", "429"}},
		{Denied, []string{"forbidden: user", "is forbidden: user", "cannot get resource", "permission denied", "unauthorized", "access denied", "authentication failed"}},
		{Refused, []string{"admission webhook", "violates podsecurity", "denied the request", "is invalid", "is immutable"}},
	} {
		if slices.ContainsFunc(words.any, func(w string) bool { return strings.Contains(text, w) }) {
			return words.code
		}
	}
	return ""
}

// clear notes what is not the cause of the first object.
func (a *asking) clear(o Object, what string) {
	if len(a.chain) == 1 && ofOperator(o.gvk().Group) {
		a.cleared = append(a.cleared, what)
	}
}

// ofOperator reports whether the kinds of a group are custom resources, which operators look after.
func ofOperator(group string) bool {
	return strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io")
}

func (a *asking) remedyOf(o Object) string {
	return "correct what it says; then, to try at once: " + a.Verb("reconcile", o.Ref)
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
