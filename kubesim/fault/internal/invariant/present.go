package invariant

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// The conditions by which kstatus reports whether an object gets there by itself.
const (
	reconcilingType = "Reconciling"
	stalledType     = "Stalled"
	failedType      = "Failed"
)

// longestMessage is what people read of a message, and all that an event takes.
const longestMessage = 1024

// findMisreports is I19: what status and events say is about the present.
func findMisreports(r, u *index) []history.Violation {
	var found []history.Violation
	told := map[string]bool{}
	tell := func(call int, text string) {
		if text != "" && !told[text] {
			told[text] = true
			found = append(found, history.Violation{Message: text, Call: call})
		}
	}
	for i := range r.run.Changes {
		c := &r.run.Changes[i]
		if c.By != operator || c.After == nil || c.After.Object["status"] == nil || history.Housekeeping(c.Group, c.Resource) {
			continue
		}
		if c.Before != nil && reflect.DeepEqual(c.Before.Object["status"], c.After.Object["status"]) {
			continue // it did not say that
		}
		key := r.lives[string(c.After.GetUID())].key
		for _, text := range []string{
			contradiction(key, c.After), borrowed(key, c.After), messageOfReady(key, c.After, u.known.readyMessages[c.Group+"/"+c.Resource]),
			otherMessage(key, c.After), unfitMessage(key, c.After),
		} {
			tell(c.Call, text)
		}
	}
	found = append(found, r.findEventErrors()...)
	return append(found, r.findCredulity(u)...)
}

// findCredulity finds what was done at the external API because a user wrote a status: changes that the
// undisturbed run does not have. A call that is repeated and changes nothing is no such change: a
// status that somebody wrote may have cost its answer to a write of the operator's own.
func (x *index) findCredulity(u *index) []history.Violation {
	last := len(x.run.Steps) - 1
	if last < 0 || last >= len(u.run.Steps) || !slices.ContainsFunc(x.run.Faults, func(f history.Fault) bool { return f.Kind == "forged" }) {
		return nil
	}
	usual := map[string]int{}
	for _, c := range u.run.Calls[:u.run.Steps[last].SettledCall] {
		if c.Side == history.External && c.Write && c.Changed {
			usual[c.What]++
		}
	}
	var found []history.Violation
	for _, c := range x.run.Calls[:x.run.Steps[last].SettledCall] {
		if c.Side != history.External || !c.Write || !c.Changed {
			continue
		}
		if usual[c.What]--; usual[c.What] == -1 {
			found = append(found, history.Violation{Call: c.Index, Message: fmt.Sprintf(
				"%q was called because a user had written a status; a status decides nothing", c.What)})
		}
	}
	return found
}

func isTrue(u *unstructured.Unstructured, kind string) (condition, bool) {
	c, ok := conditionOf(u, kind)
	return c, ok && c.status == "True"
}

// contradiction finds conditions that exclude each other.
func contradiction(key string, u *unstructured.Unstructured) string {
	_, stalled := isTrue(u, stalledType)
	_, working := isTrue(u, reconcilingType)
	switch {
	case stalled && working:
		return fmt.Sprintf("%s says both Reconciling=True and Stalled=True: either it gets there by itself or it does not", key)
	case stalled && isReady(u):
		return fmt.Sprintf("%s says Stalled=True beside Ready=True for its present generation %d; of a spec that cannot be reached, Ready=True has to name the generation before", key, u.GetGeneration())
	}
	return ""
}

// borrowed finds a problem that is reported in the words of Ready=True.
func borrowed(key string, u *unstructured.Unstructured) string {
	good, ok := isTrue(u, ready)
	if !ok {
		return ""
	}
	for _, kind := range []string{reconcilingType, stalledType} {
		c, is := isTrue(u, kind)
		if is && (c.reason == good.reason || c.message != "" && c.message == good.message) {
			return fmt.Sprintf("condition %s=True of %s has the reason %s and the message %q of Ready=True; it has to say what is going on", kind, key, c.reason, c.message)
		}
	}
	return ""
}

// messageOfReady finds a problem that is reported with a message that a healthy object has used.
func messageOfReady(key string, u *unstructured.Unstructured, words map[string]bool) string {
	state, message := stateOf(u)
	if state == failedType && words[message] {
		return fmt.Sprintf("%s has the state Failed and the message %q, which is that of an object as it should be", key, message)
	}
	for _, kind := range []string{reconcilingType, stalledType, failedType} {
		if c, is := isTrue(u, kind); is && words[c.message] {
			return fmt.Sprintf("condition %s=True of %s has the message %q, which is that of an object as it should be", kind, key, c.message)
		}
	}
	return ""
}

// otherMessage finds a status whose message is not that of the problem that it names.
func otherMessage(key string, u *unstructured.Unstructured) string {
	state, message := stateOf(u)
	if state == "" || message == "" {
		return ""
	}
	for _, kind := range []string{stalledType, reconcilingType} {
		if c, is := isTrue(u, kind); is {
			if c.message != message {
				return fmt.Sprintf("status.message of %s is %q, but condition %s=True says %q", key, message, kind, c.message)
			}
			return ""
		}
	}
	return ""
}

// unfitMessage finds texts that are not fit to be read. Only kinds that have a state of their own
// keep to the length of events everywhere.
func unfitMessage(key string, u *unstructured.Unstructured) string {
	state, message := stateOf(u)
	if why := unfit(message); why != "" {
		return fmt.Sprintf("status.message of %s %s", key, why)
	}
	for _, c := range conditionsOf(u) {
		why := unfit(c.message)
		if why == "" && state != "" && len(c.message) > longestMessage {
			why = tooLong(c.message)
		}
		if why != "" {
			return fmt.Sprintf("the message of condition %s of %s %s", c.kind, key, why)
		}
	}
	if state != "" && len(message) > longestMessage {
		return fmt.Sprintf("status.message of %s %s", key, tooLong(message))
	}
	return ""
}

func tooLong(text string) string {
	return fmt.Sprintf("has %d bytes; people and events take %d", len(text), longestMessage)
}

// unfit says what is wrong with a text. What was no UTF-8 shows as U+FFFD, or the API server would
// not have taken it.
func unfit(text string) string {
	switch {
	case !utf8.ValidString(text) || strings.ContainsRune(text, utf8.RuneError):
		return fmt.Sprintf("is %q, which was no UTF-8", text)
	case strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }):
		return fmt.Sprintf("is %q, with control characters", text)
	}
	return ""
}

// stateOf returns status.state and status.message, empty where there are none.
func stateOf(u *unstructured.Unstructured) (state, message string) {
	if u == nil {
		return "", ""
	}
	status, _ := u.Object["status"].(map[string]any)
	state, _ = status["state"].(string)
	message, _ = status["message"].(string)
	return state, message
}

// readyMessages are the messages of objects that were as they should be when the cluster was at rest, by kind.
func (x *index) readyMessages() map[string]map[string]bool {
	all := map[string]map[string]bool{}
	x.atRest(func(l *life, u *unstructured.Unstructured, _ int) {
		if _, failed := isTrue(u, failedType); failed || !isReady(u) || isUnfinished(u) || u.GetDeletionTimestamp() != nil {
			return
		}
		kind := l.group + "/" + l.resource
		if all[kind] == nil {
			all[kind] = map[string]bool{}
		}
		c, _ := conditionOf(u, ready)
		_, message := stateOf(u)
		for _, words := range []string{c.message, message} {
			if words != "" {
				all[kind][words] = true
			}
		}
	})
	return all
}

// atRest calls do for each object that there is whenever the cluster is at rest, with the number of
// calls by then.
func (x *index) atRest(do func(l *life, u *unstructured.Unstructured, call int)) {
	for _, s := range x.run.Steps {
		if s.Settled.IsZero() {
			continue
		}
		for _, l := range x.all {
			if u := x.stateAt(l, s.SettledRev); u != nil && !history.Housekeeping(l.group, l.resource) {
				do(l, u, s.SettledCall)
			}
		}
	}
}

// findEventErrors finds events that say the same and are once a warning and once not, and those
// whose words are not fit for people.
func (x *index) findEventErrors() []history.Violation {
	type note struct{ reason, words string }
	kinds := map[note]string{}
	var found []history.Violation
	for i := range x.run.Changes {
		c := &x.run.Changes[i]
		if c.By != operator || c.After == nil || c.Resource != "events" || !history.Housekeeping(c.Group, c.Resource) {
			continue
		}
		kind, n := noteOf(c.After)
		if why := unfit(n[1]); why != "" {
			found = append(found, history.Violation{Call: c.Call, Message: fmt.Sprintf("the note of an event %s %s", n[0], why)})
		}
		key := note{n[0], n[1]}
		before, known := kinds[key]
		if known && before != kind {
			found = append(found, history.Violation{Call: c.Call, Message: fmt.Sprintf("event %s, %q, was of type %s and is of type %s now", n[0], n[1], before, kind)})
		}
		kinds[key] = kind
	}
	return found
}

// noteOf returns an event's type, and its reason and words.
func noteOf(u *unstructured.Unstructured) (kind string, note [2]string) {
	kind, _ = u.Object["type"].(string)
	note[0], _ = u.Object["reason"].(string)
	note[1], _ = u.Object["note"].(string)
	if note[1] == "" {
		note[1], _ = u.Object["message"].(string)
	}
	return kind, note
}

// findModesty is the other half of I8: in the undisturbed run, whoever is at rest and not Ready says why.
func findModesty(r, u *index) []history.Violation {
	if r != u {
		return nil // I1 compares
	}
	var found []history.Violation
	told := map[*life]bool{}
	r.atRest(func(l *life, o *unstructured.Unstructured, call int) {
		c, ok := conditionOf(o, ready)
		if !ok || c.status == "True" || o.GetDeletionTimestamp() != nil || told[l] {
			return
		}
		state, _ := stateOf(o)
		kind := l.group + "/" + l.resource
		why := ""
		switch {
		case state == "Succeeded":
			why = "its state is Succeeded"
		case c.message != "" && u.known.readyMessages[kind][c.message]:
			why = fmt.Sprintf("its message is %q, as when it is", c.message)
		case u.known.kstatus[kind] && !isUnfinished(o):
			why = "it says neither Reconciling nor Stalled"
		default:
			return
		}
		told[l] = true
		found = append(found, history.Violation{Call: max(call-1, history.Nobody), Message: fmt.Sprintf(
			"%s is at rest with Ready=%s, but %s: whoever waits for it waits for ever", l.key, c.status, why)})
	})
	return found
}

// kstatusKinds are the kinds whose objects say whether they get there by themselves.
func (x *index) kstatusKinds() map[string]bool {
	kinds := map[string]bool{}
	for i := range x.run.Changes {
		c := &x.run.Changes[i]
		if kind := c.Group + "/" + c.Resource; c.By == operator && !kinds[kind] {
			kinds[kind] = slices.ContainsFunc(conditionsOf(c.After), func(c condition) bool {
				return c.kind == reconcilingType || c.kind == stalledType
			})
		}
	}
	return kinds
}

// findSpilled is I14: what is secret stays in Secrets.
func findSpilled(r, _ *index) []history.Violation {
	var found []history.Violation
	for i := range r.run.Changes {
		c := &r.run.Changes[i]
		if c.By != operator || c.After == nil || c.Group == "" && c.Resource == "secrets" {
			continue
		}
		for _, secret := range r.run.Secrets {
			if path, ok := holds(c.After.Object, secret); ok {
				if c.Before != nil {
					if _, had := holds(c.Before.Object, secret); had {
						continue // it was there already
					}
				}
				found = append(found, history.Violation{Call: c.Call, Message: fmt.Sprintf(
					"a secret of the scenario is in %s of %s %s", strings.TrimPrefix(path, "."), c.Resource, nameOf(c.Namespace, c.Name))})
			}
		}
	}
	return found
}

// holds returns the first path, in order, at which a value holds a text.
func holds(v any, text string) (path string, ok bool) {
	switch x := v.(type) {
	case string:
		return "", strings.Contains(x, text)
	case []any:
		for i, e := range x {
			if path, ok := holds(e, text); ok {
				return fmt.Sprintf("[%d]%s", i, path), true
			}
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(x)) {
			if path, ok := holds(x[k], text); ok {
				return "." + k + path, true
			}
		}
	}
	return "", false
}
