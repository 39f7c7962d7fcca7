package fault

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// TestFindingsReplay proves that the token of each finding finds the same again, whatever kind of schedule
// found it and however much shorter it was made: otherwise its replay command is a broken promise.
func TestFindingsReplay(t *testing.T) {
	every := []Kind{Crashes, Faults, Stale, Duplicates, Races, Overtaken, Forgeries, Panics, Hangs, Absences}
	cases := map[string]struct {
		why      string
		scenario Scenario
		kinds    []Kind
		most     int // of the findings of one kind and invariant are replayed
	}{
		"crashes and faults":  {"schedules that end early, and start at a snapshot", toyLife("finalizer first"), every, 1},
		"overtaken":           {"runs that are compared with ordinary deletes", toyLife("trusts its finalizer"), every, 1},
		"panics after errors": {"two disturbances, of which none can go", toyLife("forgets in a panic over an error"), []Kind{Panics}, 1},
		"absences": {
			"a race that is shortened by its crash comes in an earlier step, and is compared with another run",
			partsLife(),
			[]Kind{Races, Absences},
			10,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := Explore(t, c.scenario, Only(c.kinds...))
			if len(r.Findings) == 0 {
				t.Fatalf("%s: nothing was found", c.why)
			}
			replayed := map[string]int{}
			for _, f := range r.Findings {
				key := f.found.Group()
				if replayed[key]++; replayed[key] <= c.most {
					replays(t, c.scenario, f, c.why)
				}
			}
		})
	}
}

// TestReplaysTogether proves that schedules which are named are played with all others, and find what the replay of each finds,
// whatever comes before and after. Those of other scenarios are not played.
func TestReplaysTogether(t *testing.T) {
	s := toyLife("finalizer first")
	found := Explore(t, s, Only(Crashes, Faults)).Findings
	if len(found) == 0 {
		t.Fatal("nothing was found")
	}
	token := found[0].Token
	r := Explore(t, s, Only(Breaks), AtMost(1, Breaks), For(s.Name, Replay("v1/"+s.Name+"/crash-before@0", token), Replay("v1/"+s.Name+"/crash-before@1")),
		For("another", Replay(token)), Replay("v1/another/crash-before@0"))
	if len(r.Findings) != 1 || r.Findings[0].Token != token || len(r.Disturbed) < 3 || r.Schedules[Breaks] != 1 || r.Played() != 4 {
		t.Errorf("%d schedules find %v and disturb %v, want %s", r.Played(), r.texts(), r.Disturbed, token)
	}
}

// replays plays the schedule of a finding alone and wants it to break the same.
func replays(t *testing.T, s Scenario, f Finding, why string) {
	t.Helper()
	before := *replayFlag
	defer func() { *replayFlag = before }()
	*replayFlag = f.Token
	broken := f.Violations[0].Invariant
	again := Explore(t, s)
	if !slices.ContainsFunc(again.Findings, func(g Finding) bool {
		return g.Token == f.Token && slices.ContainsFunc(g.Violations, func(v Violation) bool { return v.Invariant == broken })
	}) {
		t.Errorf("%s: %s was reported to break %s, and its replay finds %v; reported was\n%s", why, f.Token, broken, again.texts(), f.Text)
	}
}

// partAnnotation names the parts that were made, by a record written after them.
const partAnnotation = "toy.dev/parts"

// partsLife is an operator that creates a ConfigMap under the name that its object says, records it
// afterwards, and deletes all others that it knows of. If it is killed before the record and the user goes
// back to the name before, nothing knows of what was made. While it runs, its memory does.
func partsLife() Scenario {
	setUp := func(mgr ctrl.Manager, env *Env) error {
		memory := map[string]bool{}
		return configMaps(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) error {
			if cm.Name != "a" {
				return nil
			}
			return keepPart(ctx, c, cm, memory)
		})(mgr, env)
	}
	a := configMap("a")
	a.Data = map[string]string{"part": "one"}
	back := Merge(a, `{"data":{"part":"one"}}`)
	return Scenario{
		Name: "parts", Operator: Operator{SetUp: setUp},
		Steps: []Step{Create(a), Merge(a, `{"data":{"part":"two"}}`)}, Races: []Step{back},
	}
}

func keepPart(ctx context.Context, c client.Client, cm *corev1.ConfigMap, memory map[string]bool) error {
	want := cm.Data["part"]
	for name := range strings.FieldsSeq(cm.Annotations[partAnnotation]) {
		memory[name] = true
	}
	if cm.Annotations[partAnnotation] == want && len(memory) <= 1 {
		return nil
	}
	part := configMap(want)
	if err := controllerutil.SetControllerReference(cm, part, c.Scheme()); err != nil {
		return err
	}
	memory[want] = true
	if err := c.Create(ctx, part); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	if err := recordParts(ctx, c, cm, slices.Sorted(maps.Keys(memory))); err != nil {
		return err
	}
	for _, other := range slices.Sorted(maps.Keys(memory)) {
		if other == want {
			continue
		}
		if err := c.Delete(ctx, configMap(other)); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	if err := recordParts(ctx, c, cm, []string{want}); err != nil {
		return err
	}
	clear(memory)
	return nil
}

func recordParts(ctx context.Context, c client.Client, cm *corev1.ConfigMap, parts []string) error {
	record := strings.Join(parts, " ")
	if cm.Annotations[partAnnotation] == record {
		return nil
	}
	metav1.SetMetaDataAnnotation(&cm.ObjectMeta, partAnnotation, record)
	return c.Update(ctx, cm)
}
