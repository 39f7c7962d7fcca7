package fault

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
)

// TestHabits proves that habits which do no harm are notes: everything is played, and nothing is found.
func TestHabits(t *testing.T) {
	tests := map[string]struct {
		why  string
		does func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error)
		want string
	}{
		"greeting": {
			"kubebuilder's tutorials update the status at the end of each pass",
			func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error) {
				metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "seen", "yes")
				return 0, c.Update(ctx, cm)
			},
			"in the first pass after a restart the operator writes what is there already: update configmaps default/a",
		},
		"timer": {
			"a TTL of ten minutes",
			func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error) {
				if left := time.Until(cm.CreationTimestamp.Add(10 * time.Minute)); left > 0 {
					return left, nil
				}
				return 0, client.IgnoreNotFound(c.Delete(ctx, cm, client.Preconditions{UID: &cm.UID}))
			},
			"at rest a timer of the operator changes something once, 9m30s after the last change: delete configmaps default/a",
		},
		"schedule": {
			"kubebuilder's CronJob tutorial creates a Job when it is time, and updates the status in each pass until that is done",
			func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error) {
				if left := time.Until(cm.CreationTimestamp.Add(20 * time.Minute)); left > 0 {
					metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "waits", "yes")
					return left, c.Update(ctx, cm)
				}
				if err := c.Update(ctx, cm); err != nil { // before it is known that there is something to do
					return 0, err
				}
				if err := c.Create(ctx, configMap("b")); err != nil {
					return 0, client.IgnoreAlreadyExists(err)
				}
				metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "created", "b")
				return 0, c.Update(ctx, cm)
			},
			"at rest a timer of the operator changes something once, 19m30s after the last change: create configmaps default/b",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := Explore(t, Scenario{
				Name: name, Steps: []Step{Create(configMap("a"))}, Races: []Step{}, Operator: Operator{SetUp: does(test.does)},
			})
			for _, text := range r.texts() {
				t.Error(text)
			}
			if !slices.Contains(r.Notes, test.want) {
				t.Errorf("%s is not told: want %q in %q", test.why, test.want, r.Notes)
			}
			if r.Schedules[Faults] == 0 {
				t.Errorf("%s: nothing was played", test.why)
			}
		})
	}
}

// TestRunnables proves that what a runnable creates when it starts, and finds there after a restart, is a habit, and that it
// is noise to try again and again.
func TestRunnables(t *testing.T) {
	for again, want := range map[time.Duration]string{0: "", 7 * time.Minute: "the cluster is at rest, yet the operator wrote to Kubernetes"} {
		r := Explore(t, Scenario{
			Name: "runnable", Steps: []Step{Create(configMap("a"))}, Races: []Step{},
			Operator: Operator{SetUp: func(mgr ctrl.Manager, _ *Env) error {
				return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
					for {
						if err := mgr.GetClient().Create(ctx, configMap("own")); client.IgnoreAlreadyExists(err) != nil {
							return err
						}
						if again == 0 {
							return nil
						}
						select {
						case <-ctx.Done():
							return nil
						case <-time.After(again):
						}
					}
				}))
			}},
		}, Only(Crashes))
		found := strings.Join(r.texts(), "\n")
		if (found == "") != (want == "") || !strings.Contains(found, want) {
			t.Errorf("again after %v: want %q, found\n%s", again, want, found)
		}
		note := "as it starts again the operator writes what is there already: create configmaps default/own"
		if again == 0 && !slices.Contains(r.Notes, note) {
			t.Errorf("want %q in %q", note, r.Notes)
		}
	}
}

// TestTimers proves that what follows from a timer is a habit only if the timer changes something that no other time
// does: an operator that writes what is there already every seven minutes is noisy, whatever else it does.
func TestTimers(t *testing.T) {
	tests := map[string]struct {
		why  string
		does func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error)
	}{
		"nothing": {"it writes what is there already", func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error) {
			return 7 * time.Minute, c.Update(ctx, cm)
		}},
		"between": {"it also creates something once", func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error) {
			if time.Since(cm.CreationTimestamp.Time) > 5*time.Minute {
				if err := c.Create(ctx, configMap("b")); client.IgnoreAlreadyExists(err) != nil {
					return 0, err
				}
			}
			return 7 * time.Minute, c.Update(ctx, cm)
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := Explore(t, Scenario{
				Name: name, Steps: []Step{Create(configMap("a"))}, Races: []Step{}, Operator: Operator{SetUp: does(test.does)},
			}, Only(Crashes), AtMost(1, Crashes))
			if !slices.ContainsFunc(r.texts(), func(s string) bool {
				return strings.Contains(s, "the cluster is at rest, yet the operator wrote to Kubernetes")
			}) {
				t.Errorf("%s every seven minutes, and that is not found: %q", test.why, r.texts())
			}
		})
	}
}

// TestRefused proves that a pass which fails because the external API refuses something may come again at rest, less and less often
// as the workqueue has it, and that nothing else may.
func TestRefused(t *testing.T) {
	refused := errors.New("403 Forbidden: no more than one box")
	tests := map[string]struct {
		why   string
		ask   func(*shelf) (string, error)
		again time.Duration // instead of the error
		want  string
	}{
		"refused": {"only the shelf can say when it has room", func(*shelf) (string, error) { return "", refused }, 0, ""},
		"polled": {
			"it asks for ever at the same rate", func(*shelf) (string, error) { return "", refused }, 7 * time.Minute,
			"the cluster is at rest, yet the operator wrote to the external API",
		},
		"answered": {"nothing is refused", func(*shelf) (string, error) { return "", nil }, 0, "the cluster is at rest, yet the operator wrote to Kubernetes"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := Explore(t, Scenario{
				Name: name, Steps: []Step{Create(configMap("a"))}, Races: []Step{}, ExternalAPI: newShelf,
				Operator: Operator{SetUp: func(mgr ctrl.Manager, env *Env) error {
					return does(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error) {
						metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "asked", "yes")
						if err := c.Update(ctx, cm); err != nil {
							return 0, err
						}
						if _, err := Write(ctx, env, "put box", test.ask); err != nil && test.again > 0 {
							return test.again, nil
						}
						return 0, refused
					})(mgr, env)
				}},
			}, Only(Crashes), AtMost(1, Crashes))
			found := strings.Join(r.texts(), "\n")
			if (found == "") != (test.want == "") || !strings.Contains(found, test.want) {
				t.Errorf("%s: want %q, found\n%s", test.why, test.want, found)
			}
			note := "at rest the operator tries again what the external API refuses: put box"
			if n := len(slices.DeleteFunc(slices.Clone(r.Notes), func(s string) bool { return s != note })); (n == 1) != (test.want == "") || n > 1 {
				t.Errorf("%s: %d notes in %q say %q", test.why, n, r.Notes, note)
			}
		})
	}
}

// TestGreetingEvents proves that an event which a recorder of a new process writes is a habit, like a write that
// changes nothing, and that one for each timer is not.
func TestGreetingEvents(t *testing.T) {
	tests := map[string]struct {
		why   string
		again time.Duration
		want  int
	}{
		"at first": {"aws-privateca-issuer records an event in each pass", 0, 0},
		"always":   {"it records another one every seven minutes", 7 * time.Minute, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := Explore(t, Scenario{
				Name: name, Steps: []Step{Create(configMap("a"))}, Races: []Step{},
				Operator: Operator{SetUp: func(mgr ctrl.Manager, env *Env) error {
					recorder := mgr.GetEventRecorderFor("does") //nolint:staticcheck // as most operators do
					return does(func(_ context.Context, _ client.Client, cm *corev1.ConfigMap) (time.Duration, error) {
						recorder.Event(cm, corev1.EventTypeNormal, "Seen", time.Now().String())
						return test.again, nil
					})(mgr, env)
				}},
			}, Only(Crashes))
			if got := len(r.texts()); got != test.want {
				t.Errorf("%s: %d findings, want %d:\n%s", test.why, got, test.want, strings.Join(r.texts(), "\n"))
			}
		})
	}
}

// does is an operator that does something to ConfigMap a, and again after a time; 0 means not again.
func does(do func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error)) func(ctrl.Manager, *Env) error {
	return func(mgr ctrl.Manager, _ *Env) error {
		return ctrl.NewControllerManagedBy(mgr).Named("does").For(&corev1.ConfigMap{}).Complete(
			reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				cm := &corev1.ConfigMap{}
				if err := mgr.GetClient().Get(ctx, req.NamespacedName, cm); err != nil || cm.Name != "a" {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				again, err := do(ctx, mgr.GetClient(), cm)
				return reconcile.Result{RequeueAfter: again}, err
			}))
	}
}

// TestKnown proves that what the undisturbed run breaks does not end the exploration, is found once, and
// hides nothing else: the worst comes first.
func TestKnown(t *testing.T) {
	s := toyLife("finalizer first")
	run := s.Operator.SetUp
	s.Operator.SetUp = func(mgr ctrl.Manager, env *Env) error { // and a second controller that never rests
		err := ctrl.NewControllerManagedBy(mgr).Named("clock").For(&corev1.Namespace{}).Complete(
			reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				if req.Name != "default" {
					return reconcile.Result{}, nil
				}
				n := &corev1.Namespace{}
				if err := mgr.GetClient().Get(ctx, req.NamespacedName, n); err != nil {
					return reconcile.Result{}, err
				}
				metav1.SetMetaDataAnnotation(&n.ObjectMeta, "time", time.Now().Format(time.RFC3339))
				return reconcile.Result{RequeueAfter: 7 * time.Minute}, mgr.GetClient().Update(ctx, n)
			}))
		if err != nil {
			return err
		}
		return run(mgr, env)
	}
	r := Explore(t, s, Only(Crashes))
	if r.Schedules[Crashes] == 0 {
		t.Fatal("nothing was played besides the undisturbed run")
	}
	noisy := 0
	for _, f := range r.Findings {
		if slices.ContainsFunc(f.Violations, func(v Violation) bool { return v.Invariant == I5 }) {
			noisy++
		}
	}
	if noisy != 1 {
		t.Errorf("the needless writes were found %d times, want once:\n%s", noisy, strings.Join(r.texts(), "\n"))
	}
	if len(r.Findings) < 2 || r.Findings[0].Violations[0].Invariant != I2 {
		t.Errorf("the first finding is no leak:\n%s", strings.Join(r.texts(), "\n"))
	}
}

// TestSilenceThatActs proves that steps which fail because of what happened in the silence before them
// are reported in a note, and that the schedules are played nevertheless.
func TestSilenceThatActs(t *testing.T) {
	a := configMap("a")
	r := Explore(t, Scenario{
		Name: "gone meanwhile", Steps: []Step{Create(a), Merge(a, `{"data":{"x":"1"}}`)}, Races: []Step{},
		Operator: Operator{SetUp: does(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error) {
			if left := time.Until(cm.CreationTimestamp.Add(10 * time.Minute)); left > 0 {
				return left, nil
			}
			return 0, client.IgnoreNotFound(c.Delete(ctx, cm, client.Preconditions{UID: &cm.UID}))
		})},
	}, Only(Faults))
	if r.Schedules[Faults] == 0 || !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "the steps cannot be played to their end") }) {
		t.Errorf("%v were played, the notes are %q", r.Schedules, r.Notes)
	}
}

// TestSilenceThatBreaks proves that an expectation which is met only as long as the operator is neither left alone nor
// started again is a finding.
func TestSilenceThatBreaks(t *testing.T) {
	a := configMap("a")
	has := func(want string) func(context.Context, *World) error {
		return func(ctx context.Context, w *World) error {
			cm := &corev1.ConfigMap{}
			if err := w.Client.Get(ctx, client.ObjectKeyFromObject(a), cm); err != nil || cm.Annotations["seen"] == want {
				return err
			}
			return fmt.Errorf("seen is %q, want %q", cm.Annotations["seen"], want)
		}
	}
	r := Explore(t, Scenario{
		Name: "forgetful", Steps: []Step{Create(a).Expecting(has("")), Merge(a, `{"data":{"x":"1"}}`).Expecting(has("here"))}, Races: []Step{},
		Operator: Operator{SetUp: func(mgr ctrl.Manager, _ *Env) error {
			began := time.Now()
			return does(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error) {
				if cm.Data["x"] == "" || cm.Annotations["seen"] != "" {
					return 0, nil
				}
				seen := "here"
				if time.Since(began) > 5*time.Minute {
					seen = "late"
				}
				metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "seen", seen)
				return 0, c.Update(ctx, cm)
			})(mgr, nil)
		}},
	}, Only(Faults))
	if n := len(r.Findings); n != 1 || r.Findings[0].Violations[0].Invariant != I1 || !strings.Contains(r.texts()[0], `seen is "late"`) {
		t.Errorf("%d findings, want that of the expectation:\n%s", n, strings.Join(r.texts(), "\n"))
	}
}

// TestKnownLeaks proves that a goroutine which a library is known to leave behind is no finding, as any other one is (see
// TestGoroutineThatStays).
func TestKnownLeaks(t *testing.T) {
	s := toyLife("")
	run := s.Operator.SetUp
	s.Operator.SetUp = func(mgr ctrl.Manager, env *Env) error {
		watch.Filter(watch.NewRaceFreeFake(), func(e watch.Event) (watch.Event, bool) { return e, true })
		return run(mgr, env)
	}
	r := Explore(t, s, Only(Crashes), AtMost(3, Crashes))
	if r.Schedules[Crashes] != 3 {
		t.Errorf("%v were played", r.Schedules)
	}
	for _, text := range r.texts() {
		t.Error(text)
	}
}

// TestGroups proves that two bugs of which a crash reveals each are two findings, that the first line of
// each says what differs, and that what shows the same is counted.
func TestGroups(t *testing.T) {
	annotate := func(ctx context.Context, c client.Client, cm *corev1.ConfigMap, keys ...string) error {
		for _, key := range keys { // each once
			metav1.SetMetaDataAnnotation(&cm.ObjectMeta, key, "yes")
			if err := c.Update(ctx, cm); err != nil {
				return err
			}
		}
		return nil
	}
	a := configMap("a")
	r := Explore(t, Scenario{
		Name: "two bugs", Steps: []Step{Create(a), Merge(a, `{"data":{"size":"2"}}`)}, Races: []Step{},
		Operator: Operator{SetUp: does(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error) {
			switch {
			case cm.Annotations["made"] == "":
				return 0, annotate(ctx, c, cm, "made", "created-at")
			case cm.Data["size"] == "2" && cm.Annotations["grown"] == "":
				return 0, annotate(ctx, c, cm, "grown", "updated-at")
			}
			return 0, nil
		})},
	}, Only(Crashes, Faults))
	texts := r.texts()
	if len(texts) != 2 {
		t.Fatalf("%d findings, want 2:\n%s", len(texts), strings.Join(texts, "\n"))
	}
	for _, field := range []string{"created-at", "updated-at"} {
		first := "metadata.annotations." + field + " of ConfigMap default/a is missing, without the disturbance it is \"yes\""
		i := slices.IndexFunc(texts, func(text string) bool { return strings.HasPrefix(strings.Join(strings.Fields(text), " "), first) })
		if i < 0 {
			t.Errorf("no finding begins with %q:\n%s", first, strings.Join(texts, "\n"))
			continue
		}
		if !strings.Contains(texts[i], "6 schedules show this\n") {
			t.Errorf("it is not said how many schedules show it:\n%s", texts[i])
		}
	}
}

// TestGoroutineThatStays proves that a goroutine which no process ends is one finding, of the undisturbed run, with
// the place that started it, and that all schedules are played nevertheless.
func TestGoroutineThatStays(t *testing.T) {
	s := Scenario{
		Name: "janitor", Steps: []Step{Create(configMap("a"))}, Races: []Step{},
		Operator: Operator{SetUp: configMaps(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) error {
			never := make(chan struct{})
			go func() { <-never }()
			if cm.Data["seen"] != "" {
				return nil
			}
			cm.Data = map[string]string{"seen": "yes"}
			return c.Update(ctx, cm)
		})},
	}
	r := Explore(t, s, Only(Crashes, Faults))
	for i, f := range r.Findings {
		if i > 0 || f.Violations[0].Invariant != I17 || !strings.Contains(f.Text, "known_test.go") || !strings.Contains(f.Text, "fault.TestGoroutineThatStays") {
			t.Error(f.Text)
		}
	}
	if len(r.Findings) == 0 || r.Schedules[Crashes] == 0 || r.Schedules[Faults] == 0 {
		t.Errorf("%d findings, and %v were played; want one, and all", len(r.Findings), r.Schedules)
	}
	e, w := prepared(t, s) // a new server for each run would cost up to a second
	for range 2 {
		if r := w.Play(t, run.Job{}); r.Err != nil || !r.Leaked || r.Lost || len(r.Run.Calls) != len(e.reference.Run.Calls) {
			t.Errorf("%v, leaked %v, lost %v, %d calls of %d; want the worker's server kept", r.Err, r.Leaked, r.Lost, len(r.Run.Calls), len(e.reference.Run.Calls))
		}
	}
}

// TestEmptyLists proves that a list without elements is no different from none, as Grafana's operator leaves out after a restart what it
// wrote as an empty list before, and that one with an element is different.
func TestEmptyLists(t *testing.T) {
	for element, want := range map[string]string{"": "", "a": "found.* of Gem default/red"} {
		r := Explore(t, Scenario{
			Name: "lists", Steps: []Step{Create(custom("Gem", "red"))}, Races: []Step{},
			Operator: Operator{
				CRDs: Manifests(definition("gems", "Gem")),
				SetUp: func(mgr ctrl.Manager, _ *Env) error {
					seen := false
					c := mgr.GetClient()
					return ctrl.NewControllerManagedBy(mgr).Named("gems").For(custom("Gem", "")).Complete(reconcile.Func(
						func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
							gem := custom("Gem", "")
							if err := c.Get(ctx, req.NamespacedName, gem); err != nil || seen {
								return reconcile.Result{}, client.IgnoreNotFound(err)
							}
							seen = true
							found := []any{}
							if element != "" {
								found = append(found, element)
							}
							if gem.Object["looked"] == nil {
								gem.Object["looked"], gem.Object["found"] = true, found
							} else {
								delete(gem.Object, "found")
							}
							return reconcile.Result{}, c.Update(ctx, gem)
						}))
				},
			},
		}, Only(Crashes))
		got := strings.Join(r.texts(), "\n")
		if (got == "") != (want == "") || !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("with %q: want %q, found\n%s", element, want, got)
		}
	}
}
