package model

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Moment is something that happened to an object.
type Moment struct {
	At metav1.Time `json:"at"`
	// What is created, deleted, spec, metadata, status, state, condition, attempt, event or operator.
	What string `json:"what"`
	Text string `json:"text"`
	// To is the state that the object came to, and From the one before it, if they are known.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// By is who did it, as far as the API server knows.
	By string `json:"by,omitempty"`
}

// History is what the API server tells about the past of an object.
type History struct {
	Object Ref `json:"object"`
	// Moments are in the order of time.
	Moments []Moment `json:"moments"`
	// Limits says what the API server does not keep, and Unseen what could not be read.
	Limits []string `json:"limits"`
	Unseen []string `json:"unseen,omitempty"`
}

// History returns what has happened to an object: its transitions, attempts and events, and changes of its spec. Of an object
// that does not exist any more, there may be events.
func (c *Cluster) History(ctx context.Context, r Ref) (History, error) {
	u, exists := c.get(ctx, r)
	h := History{Object: r, Moments: []Moment{}, Limits: []string{"events are deleted after an hour, unless the API server is set up otherwise"}}
	uid := ""
	if u != nil {
		uid = string(u.GetUID())
		h.Moments = slices.Concat(h.Moments, lifeOf(u), writesOf(u), conditionsOf(u))
		h.Limits = append(h.Limits, "of each writer of the object and of each condition, only the last change is known")
		if recorded := recordedOf(u); len(recorded) > 0 {
			h.Moments = append(h.Moments, recorded...)
		} else {
			h.Limits = append(h.Limits, "the object keeps no history in its status")
		}
		if op, found := c.operatorOf(ctx, r); found && !op.acquired.IsZero() {
			h.Moments = append(h.Moments, Moment{At: op.acquired, What: "operator", Text: fmt.Sprintf("%s became the leader of operator %s/%s", orElse(op.Holder, "a process"), op.Namespace, op.Name)})
		}
	}
	h.Moments = append(h.Moments, c.eventsAbout(ctx, r, uid)...)
	slices.SortStableFunc(h.Moments, func(a, b Moment) int { return a.At.Compare(b.At.Time) })
	h.Unseen = c.Unseen()
	if u == nil && len(h.Moments) == 0 {
		if exists {
			return h, fmt.Errorf("%s %s cannot be read: %s", r.Kind, named(r), strings.Join(h.Unseen, "; "))
		}
		return h, fmt.Errorf("%s %s does not exist, and there are no events about it", r.Kind, named(r))
	}
	return h, nil
}

func lifeOf(u *unstructured.Unstructured) []Moment {
	all := []Moment{{At: u.GetCreationTimestamp(), What: "created", Text: "it was created"}}
	if at := u.GetDeletionTimestamp(); at != nil {
		text := "deletion was requested"
		if finalizers := u.GetFinalizers(); len(finalizers) > 0 {
			text += "; it waits for " + strings.Join(finalizers, ", ")
		}
		all = append(all, Moment{At: *at, What: "deleted", Text: text})
	}
	return all
}

// writesOf returns the last write of each writer, by what it wrote.
func writesOf(u *unstructured.Unstructured) (all []Moment) {
	latest := -1
	for _, entry := range u.GetManagedFields() {
		if entry.Time == nil || entry.FieldsV1 == nil {
			continue
		}
		var fields map[string]any
		if err := json.Unmarshal([]byte(entry.FieldsV1.GetRawString()), &fields); err != nil {
			continue
		}
		m := Moment{At: *entry.Time, By: entry.Manager, What: "metadata"}
		switch owned := pathsOf(fields, ""); {
		case entry.Subresource != "":
			m.What, m.Text = entry.Subresource, entry.Subresource+" written"
		case slices.ContainsFunc(owned, func(p string) bool { return !strings.HasPrefix(p, "metadata.") }):
			m.What, m.Text = "spec", "last write of a writer that owns "+listed(owned)
		default:
			m.Text = "last write of a writer that owns " + listed(owned)
		}
		all = append(all, m)
		if m.What == "spec" && (latest < 0 || !m.At.Time.Before(all[latest].At.Time)) {
			latest = len(all) - 1
		}
	}
	if latest >= 0 {
		all[latest].Text += fmt.Sprintf("; the present generation, %d, is not newer", u.GetGeneration())
	}
	return all
}

// pathsOf returns the fields of a set as managedFields has them, two levels deep.
func pathsOf(fields map[string]any, prefix string) (all []string) {
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		name, is := strings.CutPrefix(key, "f:")
		if !is {
			continue
		}
		path := prefix + name
		below, _ := fields[key].(map[string]any)
		if deeper := pathsOf(below, path+"."); len(deeper) > 0 && strings.Count(path, ".") < 2 {
			all = append(all, deeper...)
			continue
		}
		all = append(all, path)
	}
	return all
}

// listed names some of many.
func listed(names []string) string {
	if len(names) > 5 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:5], ", "), len(names)-5)
	}
	return orElse(strings.Join(names, ", "), "nothing any more")
}

func conditionsOf(u *unstructured.Unstructured) (all []Moment) {
	for _, cond := range statusOf(u).Conditions {
		text := fmt.Sprintf("%s became %s", cond.Type, cond.Status)
		if cond.Reason != "" {
			text += " (now " + cond.Reason + ")"
		}
		if cond.Message != "" {
			text += ": " + flatten(cond.Message)
		}
		all = append(all, Moment{At: cond.LastTransitionTime, What: "condition", Text: text})
	}
	return all
}

// recordedOf returns what status.history has, in the forms that are usual.
func recordedOf(u *unstructured.Unstructured) (all []Moment) {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "history")
	for _, item := range list {
		entry, is := item.(map[string]any)
		if !is {
			continue
		}
		text := func(keys ...string) string {
			for _, key := range keys {
				if s, is := entry[key].(string); is && s != "" {
					return s
				}
			}
			return ""
		}
		at, err := time.Parse(time.RFC3339Nano, text("time", "at", "lastTransitionTime", "timestamp", "completionTime", "startedTime"))
		if err != nil {
			continue
		}
		m := Moment{At: metav1.NewTime(at), What: "state", Text: text("state", "to", "phase", "reason")}
		if m.From = text("from"); m.From != "" { // else it may be anything that has a state, such as a release
			m.To = m.Text
			m.Text = m.From + " → " + m.To
		}
		if message := text("message"); message != "" {
			m.Text += ": " + flatten(message)
		}
		all = append(all, m)
	}
	return all
}

// eventsAbout returns the events about an object: about this one if its UID is known, or else about all of the name.
func (c *Cluster) eventsAbout(ctx context.Context, r Ref, uid string) (all []Moment) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "EventList"})
	selector := client.MatchingFields{"involvedObject.kind": r.Kind, "involvedObject.name": r.Name}
	if uid != "" {
		selector = client.MatchingFields{"involvedObject.uid": uid}
	}
	if err := c.reader.List(ctx, list, client.InNamespace(r.Namespace), selector); err != nil {
		c.miss("events in namespace "+r.Namespace, err)
		return nil
	}
	for _, item := range list.Items {
		field := func(path ...string) string {
			text, _, _ := unstructured.NestedString(item.Object, path...)
			return text
		}
		m := Moment{At: metav1.NewTime(eventTime(item)), What: "event", By: cmp.Or(field("reportingComponent"), field("source", "component"))}
		if field("type") == "Warning" {
			m.What = "attempt"
		}
		m.Text = strings.TrimSuffix(field("reason")+": "+flatten(field("message")), ": ")
		count, _, _ := unstructured.NestedInt64(item.Object, "count")
		if series, has, _ := unstructured.NestedInt64(item.Object, "series", "count"); has {
			count = series
		}
		if first := cmp.Or(field("firstTimestamp"), field("eventTime")); count > 1 {
			m.Text += fmt.Sprintf(" (%d times since %s)", count, first)
		}
		all = append(all, m)
	}
	return all
}

// Since leaves out what happened before a time.
func (h *History) Since(at time.Time) {
	h.Moments = slices.DeleteFunc(h.Moments, func(m Moment) bool { return m.At.Time.Before(at) })
}
