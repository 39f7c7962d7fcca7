package model_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
	"github.com/trimtab-dev/trimtab/testenv"
)

// probeOf is a Probe with a condition Ready since a day of January.
func probeOf(name, status, reason string, day int, metadata string) string {
	return fmt.Sprintf(`apiVersion: probe.trimtab.dev/v1
kind: Probe
metadata: {name: %s%s}
spec: {size: 1}
status: {observedGeneration: 1, state: %s, message: is %s, conditions: [{type: Ready, status: %q, reason: %s, message: "", lastTransitionTime: "2026-01-%02dT03:04:05Z"}]}`,
		name, metadata, reason, strings.ToLower(reason), status, reason, day)
}

// TestStatus: what is not ready is listed, worst first and those of a reason together, and the rest is counted.
func TestStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(strings.Join([]string{
		probeOf("fine", "True", "Succeeded", 1, ""), probeOf("works", "Unknown", "Processing", 1, ""), probeOf("young", "False", "Leak", 5, ""),
		probeOf("dry", "False", "Dry", 4, ""), probeOf("old", "False", "Leak", 3, ""),
		probeOf("rests", "True", "Succeeded", 1, `, annotations: {trimtab.dev/paused: "true"}`),
		"apiVersion: probe.trimtab.dev/v1\nkind: Probe\nmetadata: {name: new}\nspec: {size: 1}",
	}, "\n---\n"))
	for name, kind := range map[string]schema.GroupVersionKind{"a kind": {Group: "probe.trimtab.dev", Version: "v1", Kind: "Probe"}, "all kinds": {}} {
		t.Run(name, func(t *testing.T) {
			s, err := w.cluster(w.cfg).Status(t.Context(), kind, w.namespace)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range s.NotReady {
				got = append(got, o.Why()+" "+o.Name)
			}
			want := []string{"Leak old", "Leak young", "Dry dry", "New new", "Processing works", "Paused rests"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("not ready (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(map[string]int{"Probe": 1}, s.Ready); diff != "" || len(s.Unseen) > 0 {
				t.Errorf("ready (-want +got):\n%s\nnot seen: %q", diff, s.Unseen)
			}
		})
	}
}

// TestTree: dependents, owned objects and the external resource are below an object, what is not ready first.
func TestTree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(`apiVersion: bundles.trimtab.dev/v1
kind: Bundle
metadata: {name: b}
spec: {}
status:
  observedGeneration: 1
  state: Processing
  inventory: [{version: v1, kind: ConfigMap, namespace: NS, name: fine}, {version: v1, kind: Secret, namespace: NS, name: gone}]
  conditions: [{type: Ready, status: Unknown, reason: Processing, message: "", lastTransitionTime: "2026-01-02T03:04:05Z"}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: fine, annotations: {owner: Bundle/b}}
---
apiVersion: things.trimtab.dev/v1
kind: Thing
metadata: {name: t, annotations: {owner: Bundle/b}}
spec: {}
status: {observedGeneration: 1, external: {id: x-1, status: running}, conditions: [{type: Ready, status: "True", reason: Succeeded, message: "", lastTransitionTime: "2026-01-02T03:04:05Z"}]}`)
	o, unseen := w.cluster(w.cfg).Tree(t.Context(), refOf(t, "bundles.trimtab.dev/v1 Bundle b", w.namespace))
	var lines []string
	var walk func(o model.Object, indent string)
	walk = func(o model.Object, indent string) {
		lines = append(lines, strings.TrimSpace(indent+o.String()+" "+o.Relation+" "+string(o.Ready)))
		for _, next := range o.Objects {
			walk(next, indent+"> ")
		}
	}
	walk(o, "")
	want := []string{"Bundle/b  Unknown", "> Secret/gone dependent False", "> ConfigMap/fine dependent", "> Thing/t owned True", "> > external/x-1 external"}
	if diff := cmp.Diff(want, lines); diff != "" || len(unseen) > 0 {
		t.Errorf("tree (-want +got):\n%s\nnot seen: %q", diff, unseen)
	}
}

// TestWaves: a dependent that is not created yet waits for the first wave that is not ready, and is not the cause of anything.
func TestWaves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(`apiVersion: bundles.trimtab.dev/v1
kind: Bundle
metadata: {name: b}
spec: {}
status:
  observedGeneration: 1
  state: Processing
  inventory:
  - {version: v1, kind: Secret, namespace: NS, name: later, applyOrder: 2, phase: ScheduledForApplication}
  - {version: v1, kind: Secret, namespace: NS, name: lost, applyOrder: 2, phase: Ready}
  - {version: v1, kind: ConfigMap, namespace: NS, name: fine}
  - {group: things.trimtab.dev, version: v1, kind: Thing, namespace: NS, name: t, applyOrder: 1, phase: Creating, dependsOn: [/ConfigMap/NS/fine]}
  conditions: [{type: Ready, status: Unknown, reason: Processing, message: "", lastTransitionTime: "2026-01-02T03:04:05Z"}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: fine, annotations: {owner: Bundle/b}}
---
apiVersion: things.trimtab.dev/v1
kind: Thing
metadata: {name: t, annotations: {owner: Bundle/b}}
spec: {}
status: {observedGeneration: 1, conditions: [{type: Ready, status: "False", reason: Dry, message: no water, lastTransitionTime: "2026-01-02T03:04:05Z"}]}`)
	o, _ := w.cluster(w.cfg).Tree(t.Context(), refOf(t, "bundles.trimtab.dev/v1 Bundle b", w.namespace))
	var got []string
	for _, o := range o.Objects {
		if o.Wave == nil {
			t.Fatalf("the wave of %s is not known", o)
		}
		got = append(got, fmt.Sprintf("%d %s %s %s: %s", *o.Wave, o, o.State, o.Ready, o.Message)+strings.Join(o.Needs, " "))
	}
	want := []string{"2 Secret/lost Missing False: does not exist", "1 Thing/t InProgress False: no waterConfigMap/fine", "2 Secret/later Held Unknown: waits for wave 1", "0 ConfigMap/fine  : "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("dependents (-want +got):\n%s", diff)
	}
	e, err := w.cluster(w.cfg).Why(t.Context(), refOf(t, "bundles.trimtab.dev/v1 Bundle b", w.namespace))
	if err != nil || e.Cause == nil || e.Cause.Code != model.Absent || e.Chain[1].Name != "lost" {
		t.Errorf("the cause is %+v, %v; want the Secret that was created and is lost, not the one that is held", e.Cause, err)
	}
}

// TestUnseen: whoever may read but one kind gets what that says, and what could not be seen.
func TestUnseen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(waits("TooLarge", "spec.size is more than 10", "Stalled"))
	user := testenv.User(t, w.cfg, rbacv1.PolicyRule{APIGroups: []string{"probe.trimtab.dev"}, Resources: []string{"probes"}, Verbs: []string{"get"}})
	e, err := w.cluster(user).Why(t.Context(), refOf(t, "probe.trimtab.dev/v1 Probe a", w.namespace))
	if err != nil {
		t.Fatal(err)
	}
	if e.Cause == nil || e.Cause.Code != model.Told {
		t.Errorf("cause %+v", e.Cause)
	}
	for _, want := range []string{"leases of operators: forbidden", "objects of kind Pod: forbidden"} {
		if !strings.Contains(strings.Join(e.Unseen, "\n"), want) {
			t.Errorf("not seen: %q, want %q among them", e.Unseen, want)
		}
	}
	_, err = w.cluster(user).Why(t.Context(), refOf(t, "things.trimtab.dev/v1 Thing a", w.namespace))
	if err == nil || !strings.Contains(err.Error(), "cannot be read: Thing "+w.namespace+"/a: forbidden") {
		t.Errorf("an object that may not be read: %v", err)
	}
	_, err = w.cluster(user).Why(t.Context(), refOf(t, "probe.trimtab.dev/v1 Probe nobody", w.namespace))
	if err == nil || !strings.Contains(err.Error(), "Probe "+w.namespace+"/nobody does not exist") {
		t.Errorf("an object that does not exist: %v", err)
	}
}
