package looptest_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trimtab-dev/trimtab/conditions"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/loop/looptest"
)

type (
	run     = loop.Run[*corev1.ConfigMap]
	options = looptest.Options[*corev1.ConfigMap]
)

func object() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a", UID: "u", ResourceVersion: "7"}}
}

// TestNewPass: what an author's code does with a Run is seen, and the object of the test stays as it is.
func TestNewPass(t *testing.T) {
	obj := object()
	terms := loop.Terms{Installation: "blue"}
	p := looptest.NewPass(obj, options{
		Terms: terms, Retry: loop.RetryInfo{Attempt: 3, Last: true}, Vanished: true,
		Sharing: map[string][]*corev1.ConfigMap{"key": {obj}},
	})
	r := p.Run
	r.Obj.Data = map[string]string{"changed": "yes"}
	if obj.Data != nil {
		t.Error("the Run holds the object of the test, not a copy")
	}
	if r.Terms().Installation != "blue" || r.Retry() != (loop.RetryInfo{Attempt: 3, Last: true}) || !r.Vanished() {
		t.Errorf("terms %+v, retry %+v, vanished %t", r.Terms(), r.Retry(), r.Vanished())
	}
	if sharing, err := r.Sharing(t.Context(), "key"); err != nil || len(sharing) != 1 || sharing[0] != obj {
		t.Errorf("sharing %v, %v", sharing, err)
	}
	r.Log().Info("a logger that logs nothing")
	r.Event("Warning", "Spilled", "water\nis everywhere")
	r.Event("Normal", "Mopped", "100 % dry")
	want := []conditions.Event{{Warning: true, Reason: "Spilled", Note: "water is everywhere"}, {Reason: "Mopped", Note: "100 % dry"}}
	if diff := cmp.Diff(want, p.Events()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestPersist: what an author makes durable within a pass is durable, in the fake client and in the
// one that a test gives.
func TestPersist(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]client.Client{
		"the fake client": nil,
		"one of the test": fake.NewClientBuilder().WithScheme(scheme).WithObjects(object()).Build(),
	} {
		t.Run(name, func(t *testing.T) {
			obj := object()
			if c == nil {
				obj.ResourceVersion = "999"
			}
			p := looptest.NewPass(obj, options{Client: c})
			p.Run.Obj.Annotations = map[string]string{"id": "4711"}
			if err := p.Run.Persist(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := &corev1.ConfigMap{}
			if err := p.Run.Live().Get(t.Context(), client.ObjectKeyFromObject(obj), got); err != nil || got.Annotations["id"] != "4711" {
				t.Errorf("annotations %v, %v", got.Annotations, err)
			}
		})
	}
}

// TestReport: a report follows from the outcome and from what the author set, and asking for it changes
// nothing.
func TestReport(t *testing.T) {
	broken := errors.New("the pump is broken")
	tests := map[string]struct {
		why            string
		set            func(*run)
		outcome        loop.Outcome
		state, message string
		ready          metav1.ConditionStatus
		reason         string
	}{
		"done":           {"nothing else was said", func(*run) {}, loop.Done(), "Succeeded", "the object matches its spec", "True", "Succeeded"},
		"its own Ready":  {"the author knows better", func(r *run) { r.Conditions().False("Ready", "Dry", "no water") }, loop.Done(), "Pending", "no water", "False", "Dry"},
		"its own state":  {"the author's word is shown", func(r *run) { r.SetState("Resting", "", "") }, loop.Done(), "Resting", "the object matches its spec", "True", "Succeeded"},
		"failed":         {"the error is the message", func(*run) {}, loop.Fail(broken).Because("Broken"), "Failed", "the pump is broken", "False", "Broken"},
		"its own report": {"a report replaces all", func(r *run) { r.Report(conditions.Report{State: "Odd", Reason: "So", Message: "it is"}) }, loop.Fail(broken), "Odd", "it is", "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := looptest.NewPass(object(), options{})
			test.set(p.Run)
			for range 2 {
				got := p.Report(test.outcome)
				if got.State != test.state || got.Message != test.message {
					t.Errorf("%s: %s, %q; want %s, %q", test.why, got.State, got.Message, test.state, test.message)
				}
				var ready metav1.Condition
				if c := got.Ready(); c != nil {
					ready = *c
				}
				if ready.Status != test.ready || ready.Reason != test.reason {
					t.Errorf("%s: Ready %s %s, want %s %s", test.why, ready.Status, ready.Reason, test.ready, test.reason)
				}
				p.Report(loop.Terminal("Other", broken))
			}
		})
	}
	t.Run("a cleanup", func(t *testing.T) {
		got := looptest.NewPass(object(), options{}).ReportCleanup(loop.CleanupFailed(broken))
		if got.State != "Terminating" || got.Message != "the pump is broken" || !got.Event.Warning {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("the last attempt", func(t *testing.T) {
		got := looptest.NewPass(object(), options{Retry: loop.RetryInfo{Attempt: 2, Last: true}}).Report(loop.Fail(broken))
		if want := "the pump is broken; gave up after 2 retries, change the object to try again"; got.Message != want {
			t.Errorf("message %q, want %q", got.Message, want)
		}
	})
}
