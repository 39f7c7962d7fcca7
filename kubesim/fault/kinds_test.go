package fault

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

// TestLag proves that reads which lag behind writes are played where an external API has them, and
// only there.
func TestLag(t *testing.T) {
	lagging := func(r Report) bool {
		return slices.ContainsFunc(r.Findings, func(f Finding) bool { return strings.Contains(f.Token, schedule.Lag) })
	}
	s := toyLife("")
	if r := Explore(t, s, Only(Stale)); len(r.Findings) > 0 {
		t.Errorf("findings with an external API that shows at once what was written: %v", r.texts())
	}
	s.Lag = 5 * time.Second
	if r := Explore(t, s, Only(Stale)); !lagging(r) {
		t.Error("an operator that takes what it does not see for absent passed with an external API whose reads lag")
	}
}

// TestLagEnds proves that a read does not lag behind a write that was too long ago, also where the plan, which goes by the
// undisturbed run, could not know: in a pair, or when a schedule is shortened.
func TestLagEnds(t *testing.T) {
	s := toyLife("")
	s.Lag = 5 * time.Second
	e, _ := prepared(t, s)
	var changed time.Time
	late := -1
	for _, c := range e.reference.Run.Calls {
		switch {
		case c.Side != history.External:
		case c.Write:
			changed = c.At
		case !changed.IsZero() && c.At.Sub(changed) > s.Lag:
			late = c.Index
		}
	}
	if late < 0 {
		t.Fatal("no external read comes long after a write")
	}
	*replayFlag = fmt.Sprintf("v1/toy/lag@%d", late)
	defer func() { *replayFlag = "" }()
	if r, err := explored(t, s, time.Minute); err == nil || !strings.Contains(err.Error(), "disturbs nothing") {
		t.Errorf("a read long after a write was disturbed: %v, %v", r.Disturbed, err)
	}
}

// TestKilledAtStart proves that a process may be killed while its caches fill, as the second of two disturbances can do:
// controller-runtime's manager never returns if its context is over by then.
func TestKilledAtStart(t *testing.T) {
	s := toyLife("")
	setUp := s.Operator.SetUp
	s.Operator.SetUp = func(mgr ctrl.Manager, env *Env) error {
		index := func(client.Object) []string { return nil }
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), configMap("a"), "some", index); err != nil {
			return err
		}
		return setUp(mgr, env)
	}
	e, _ := prepared(t, s)
	if c := e.reference.Run.Calls[0]; c.Verb != "watch" && c.Verb != "list" {
		t.Fatalf("the first call is %q, not that of a cache", c.What)
	}
	*replayFlag = "v1/toy/crash-before@0"
	defer func() { *replayFlag = "" }()
	if r, err := explored(t, s, 5*time.Second); err != nil || len(r.Findings) > 0 {
		t.Errorf("%v, %q", err, r.texts())
	}
}

// TestReplay proves that a token plays its schedule and no other.
func TestReplay(t *testing.T) {
	s := toyLife("remembers in the object alone")
	all := Explore(t, s, Only(Crashes))
	if len(all.Findings) == 0 {
		t.Fatal("nothing was found")
	}
	token := all.Findings[0].Token
	replayed := func(token string) Report {
		before := *replayFlag
		defer func() { *replayFlag = before }()
		*replayFlag = token
		return Explore(t, s)
	}
	got := replayed(token)
	if len(got.Findings) != 1 || got.Findings[0].Token != token {
		t.Fatalf("replaying %s gave %v", token, got.Findings)
	}
	if diff := cmp.Diff(all.Findings[0].Text, got.Findings[0].Text); diff != "" {
		t.Errorf("the replay tells something else (-found +replayed):\n%s", diff)
	}
	race := Explore(t, s, Only(Races))
	if len(race.Findings) == 0 {
		t.Fatal("no race was found")
	}
	if got := replayed(race.Findings[0].Token); len(got.Findings) != 1 {
		t.Errorf("replaying %s found nothing", race.Findings[0].Token)
	}
	if len(got.Disturbed) != 1 {
		t.Errorf("the replay disturbed %v", got.Disturbed)
	}
	*replayFlag = "v1/toy/failed@999"
	if _, err := explored(t, s, time.Minute); err == nil || !strings.Contains(err.Error(), "disturbs nothing") {
		t.Errorf("a token beyond the last call gave %v", err)
	}
	*replayFlag = ""
	got = replayed("v1/another scenario/crash-after@1")
	if len(got.Findings) > 0 || len(got.Schedules) > 0 {
		t.Errorf("the token of another scenario was played: %v", got)
	}
	if diff := cmp.Diff([]string{`-fault.replay names scenario "another scenario", so nothing was played`}, got.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

// TestPruning proves that what rules leave out is counted, and finds nothing that the rest does
// not find.
func TestPruning(t *testing.T) {
	groups := func(r Report) (all []string) {
		for _, f := range r.Findings {
			all = append(all, f.found.Group())
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	s := toyLife("finalizer first")
	pruned := Explore(t, s, Only(Crashes, Stale))
	whole := Explore(t, s, Only(Crashes, Stale), Unpruned())
	left := pruned.Pruned[SameInstant] + pruned.Pruned[NoEffect] + pruned.Pruned[NothingHeld]
	played := func(r Report) int { return r.Schedules[Crashes] + r.Schedules[Stale] }
	if left == 0 || played(whole) != played(pruned)+left {
		t.Errorf("%d schedules with and %d without pruning, %d left out", played(pruned), played(whole), left)
	}
	if diff := cmp.Diff(groups(whole), groups(pruned)); diff != "" {
		t.Errorf("findings (-whole +pruned):\n%s", diff)
	}
}

// TestShrinking proves that of two disturbances the one that does not matter goes, and that
// the run ends with the step in which the damage shows.
func TestShrinking(t *testing.T) {
	e, w := prepared(t, toyLife("remembers in the object alone"))
	put := slices.IndexFunc(e.reference.Run.Calls, func(c history.Call) bool { return c.What == "put new" })
	j := run.Job{Schedule: schedule.Schedule{{Kind: schedule.Throttled, At: 0}, {Kind: schedule.CrashAfter, At: put + 1}}, Like: e.reference.Run}
	e.find(j, w.Play(t, j))
	if len(e.report.Findings) != 1 {
		t.Fatalf("findings: %v", e.report.Findings)
	}
	e.shrinkAll()
	got := e.report.Findings[0].found.Job.Schedule
	if slices.ContainsFunc(got, func(d schedule.Disturbance) bool { return d.Kind == schedule.Throttled }) {
		t.Errorf("%v still has what does not matter", got)
	}
	if _, ok := got.Find(1, schedule.Until); !ok {
		t.Errorf("%v does not end with step 1", got)
	}
}

// TestQuietRaces proves that what a user's act alone breaks is found and can be replayed, though
// nothing disturbs it.
func TestQuietRaces(t *testing.T) {
	s := toyLife("trusts its finalizer")
	s.Steps = s.Steps[:2]
	s.Races = []Step{{Name: "take the finalizers away and delete", Do: func(ctx context.Context, w *World) error {
		cm := configMap("a")
		if err := w.Client.Patch(ctx, cm, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
			return err
		}
		return w.Client.Delete(ctx, cm)
	}}}
	r := Explore(t, s, Only(Races))
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return strings.Contains(f.Token, schedule.Later) })
	if i < 0 || r.Findings[i].Violations[0].Invariant != "I2" {
		t.Fatalf("a box without an owner was not found: %v", r.texts())
	}
	before := *replayFlag
	defer func() { *replayFlag = before }()
	*replayFlag = r.Findings[i].Token
	if again := Explore(t, s); len(again.Findings) != 1 || again.Findings[0].Text != r.Findings[i].Text {
		t.Errorf("%s replays as %v", *replayFlag, again.Findings)
	}
}

// TestSharedKind proves that content of users' objects is theirs unless the scenario says otherwise.
func TestSharedKind(t *testing.T) {
	made := configMap("a")
	made.Data = map[string]string{"size": "0"}
	s := Scenario{
		Name: "writes into what users made", Steps: []Step{Create(made)}, Races: []Step{},
		Operator: Operator{SetUp: func(mgr ctrl.Manager, _ *Env) error {
			return ctrl.NewControllerManagedBy(mgr).Named("rotator").For(&corev1.ConfigMap{}).Complete(
				reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
					cm := &corev1.ConfigMap{}
					if err := mgr.GetClient().Get(ctx, req.NamespacedName, cm); err != nil || cm.Data["size"] != "0" {
						return reconcile.Result{}, client.IgnoreNotFound(err)
					}
					cm.Data = map[string]string{"size": "1"}
					return reconcile.Result{}, mgr.GetClient().Update(ctx, cm)
				}))
		}},
	}
	if r := Explore(t, s, Only(Crashes)); len(r.Findings) == 0 || r.Findings[0].Violations[0].Invariant != "I10" {
		t.Errorf("what a user wrote was overwritten, and the findings are: %v", r.texts())
	}
	s.Shared = []string{"configmaps"}
	if r := Explore(t, s, Only(Crashes)); len(r.Findings) > 0 {
		t.Errorf("it is meant to, and the findings are: %v", r.texts())
	}
}

// TestCacheOptions proves that a manager's options are not shared between processes: each has
// a cache of its own.
func TestCacheOptions(t *testing.T) {
	s := toyLife("")
	s.Operator.Manager = manager.Options{Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}}}
	r := Explore(t, s, Only(Crashes))
	for _, text := range r.texts() {
		t.Error(text)
	}
	if r.Schedules[Crashes] == 0 {
		t.Error("nothing was played")
	}
}

// TestHiddenEffects proves that a write to the external API is a point to crash at although nothing
// shows there yet: an accepted request may take effect later.
func TestHiddenEffects(t *testing.T) {
	s := toyLife("")
	s.ExternalAPI = func() ExternalAPI { return &shelf{boxes: map[string]box{}, hides: true} }
	e, _ := prepared(t, s)
	put := slices.IndexFunc(e.reference.Run.Calls, func(c history.Call) bool { return c.What == "put new" })
	if e.reference.Run.Calls[put].Changed {
		t.Fatal("the box shows at once")
	}
	if !slices.ContainsFunc(e.plan.Crashes(), func(j run.Job) bool { return j.Schedule[0] == schedule.Disturbance{Kind: schedule.CrashAfter, At: put} }) {
		t.Errorf("no crash after %q", "put new")
	}
}

// TestTwoWatches proves that a controller which is told of one event twice, about two objects,
// is played in one order.
func TestTwoWatches(t *testing.T) {
	other := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		if o.GetName() != "a" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: "default", Name: "b"}}}
	})
	count := func(mgr ctrl.Manager, _ *Env) error {
		return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Watches(&corev1.ConfigMap{}, other).Complete(
			reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				cm, a := &corev1.ConfigMap{}, &corev1.ConfigMap{}
				if err := mgr.GetClient().Get(ctx, req.NamespacedName, cm); err != nil {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				err := mgr.GetClient().Get(ctx, types.NamespacedName{Namespace: "default", Name: "a"}, a)
				if err != nil || cm.Annotations["seen"] == a.Data["v"] {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "seen", a.Data["v"])
				return reconcile.Result{}, mgr.GetClient().Update(ctx, cm)
			}))
	}
	a := configMap("a")
	s := Scenario{Name: "two watches", Operator: Operator{SetUp: count}, Steps: []Step{
		Create(a), Create(configMap("b")), Merge(a, `{"data":{"v":"2"}}`), Merge(a, `{"data":{"v":"3"}}`),
	}}
	for range 10 {
		if _, err := explored(t, s, time.Minute, Crashes); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSetupCalls proves that what sets an operator up may call Kubernetes and the external API, and that
// these calls are disturbed like all others.
func TestSetupCalls(t *testing.T) {
	s := toyLife("")
	run := s.Operator.SetUp
	s.Operator.SetUp = func(mgr ctrl.Manager, env *Env) error {
		cm := &corev1.ConfigMap{}
		err := mgr.GetAPIReader().Get(context.Background(), types.NamespacedName{Namespace: "default", Name: "settings"}, cm)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		return run(mgr, env)
	}
	r := Explore(t, s, Only(Crashes, Faults))
	if r.Calls != 15 {
		t.Errorf("%d calls, want one more than without the one that sets it up, 15", r.Calls)
	}
	for _, text := range r.texts() {
		t.Error(text)
	}
}

// TestBecomes proves that a condition which speaks of an earlier generation is not enough.
func TestBecomes(t *testing.T) {
	for seen, want := range map[int64]bool{1: false, 2: true} {
		u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"observedGeneration": seen}}}
		u.SetGeneration(2)
		got, ok := observedGeneration(u, map[string]any{"type": "Ready"})
		if !ok || (got == u.GetGeneration()) != want {
			t.Errorf("a status of generation %d is taken for %d", seen, got)
		}
		own, _ := observedGeneration(u, map[string]any{"observedGeneration": int64(7)})
		if own != 7 {
			t.Errorf("the condition speaks of generation 7, it is taken for %d", own)
		}
	}
}
