package component_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/health"
	"github.com/trimtab-dev/trimtab/health/cel"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/testenv"
)

// gauges is a kind whose status says what the test writes, and nothing at first.
func gauges() schema.GroupKind { return schema.GroupKind{Group: "tests.trimtab.dev", Kind: "Gauge"} }

func gauge(name string, annotations ...string) *unstructured.Unstructured {
	return object(gauges().Group+"/v1", gauges().Kind, name, nil, annotations...)
}

// withGauges installs the kind of gauges.
func (b *bench) withGauges() *bench {
	b.t.Helper()
	testenv.Install(b.t, b.cfg, plain(gauges()))
	return b
}

// status writes the status of an object that exists.
func (b *bench) status(u *unstructured.Unstructured, status string) {
	b.t.Helper()
	if err := b.admin.Status().Patch(b.t.Context(), b.in(u), client.RawPatch(types.MergePatchType, []byte(`{"status":`+status+`}`))); err != nil {
		b.t.Fatal(err)
	}
}

// awaits waits until the component says what it waits for, and nothing else.
func (b *bench) awaits(objects ...string) {
	b.t.Helper()
	b.await("waiting for "+strings.Join(objects, ", "), func(o *bundle.Bundle) bool {
		for i, text := range objects {
			kind, rest, _ := strings.Cut(text, " ")
			objects[i] = kind + " " + b.namespace + "/" + strings.TrimPrefix(rest, b.namespace+"/")
		}
		return o.Status.State == component.StateProcessing && o.Status.Message == "waiting for "+strings.Join(objects, ", ")
	})
}

func TestHints(t *testing.T) {
	t.Parallel()
	t.Run("004-84 has-observed-generation", func(t *testing.T) {
		t.Parallel()
		b := newBench(t).withGauges()
		b.create(gauge("a", b.key("status-hint"), "has-observed-generation"), gauge("b"))
		b.awaits("Gauge a: it has no status.observedGeneration yet")
		b.status(gauge("b"), `{"phase":"Fine"}`)
		b.status(gauge("a"), `{"phase":"Fine"}`)
		b.fence()
		b.awaits("Gauge a: it has no status.observedGeneration yet")
		b.status(gauge("a"), `{"observedGeneration":1}`)
		b.ready()
	})
	t.Run("004-85 has-ready-condition", func(t *testing.T) {
		t.Parallel()
		b := newBench(t).withGauges()
		b.create(gauge("a", b.key("status-hint"), "has-ready-condition"), gauge("b"))
		b.awaits("Gauge a: it has condition Ready Unknown")
		b.status(gauge("a"), `{"conditions":[{"type":"Ready","status":"False","message":"no power"}]}`)
		b.awaits("Gauge a: it is not ready: no power")
		b.status(gauge("a"), `{"conditions":[{"type":"Ready","status":"True"}]}`)
		b.ready()
	})
	t.Run("004-86 conditions", func(t *testing.T) {
		t.Parallel()
		b := newBench(t).withGauges()
		b.create(gauge("a", b.key("status-hint"), "conditions=Green;Blue"), gauge("b"))
		b.awaits("Gauge a: it has condition Blue Unknown")
		b.status(gauge("a"), `{"conditions":[{"type":"Blue","status":"True"}]}`)
		b.awaits("Gauge a: it has condition Green Unknown")
		b.status(gauge("a"), `{"conditions":[{"type":"Blue","status":"True"},{"type":"Green","status":"False"}]}`)
		b.awaits("Gauge a: it has condition Green False")
		b.status(gauge("a"), `{"conditions":[{"type":"Blue","status":"True"},{"type":"Green","status":"True"}]}`)
		b.ready()
	})
	t.Run("004-87 lists of hints", func(t *testing.T) {
		t.Parallel()
		b := newBench(t).withGauges()
		hint := b.key("status-hint")
		b.create(gauge("a", hint, "has-ready-condition, conditions=Blue,has-observed-generation"))
		b.awaits("Gauge a: it has no status.observedGeneration yet")
		b.status(gauge("a"), `{"observedGeneration":1}`)
		b.awaits("Gauge a: it has condition Blue Unknown")
		b.status(gauge("a"), `{"conditions":[{"type":"Blue","status":"True"}]}`)
		b.awaits("Gauge a: it has condition Ready Unknown")
		b.status(gauge("a"), `{"conditions":[{"type":"Blue","status":"True"},{"type":"Ready","status":"True"}]}`)
		b.ready()
		b.requests.Reset()
		b.change(gauge("a", hint, "has-ready-condition,ready"), configMap("new", "1"))
		b.failed(hint, `"ready"`, `"has-observed-generation", "has-ready-condition" or "conditions=<type>;<type>"`)
		if sent := b.sent(); sent.Dependents != 0 {
			t.Errorf("an unknown hint: %v", sent)
		}
	})
}

// TestFailedDependent: what will not become ready by itself is not waited for.
func TestFailedDependent(t *testing.T) {
	t.Parallel()
	t.Run("W13 a Job that failed", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		one := int32(1)
		job := &batchv1.Job{
			TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Name: "migrate"},
			Spec: batchv1.JobSpec{BackoffLimit: &one, ManagedBy: new("tests.trimtab.dev/nobody"), Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "a", Image: "a"}}},
			}},
		}
		b.create(job, configMap("later", "1", b.key("apply-order"), "1"))
		b.waiting("Job "+b.namespace+"/migrate", "it has not completed")
		b.status(object("batch/v1", "Job", "migrate", nil), fmt.Sprintf(`{"startTime":%q,"failed":2,"conditions":[
			{"type":"FailureTarget","status":"True","reason":"BackoffLimitExceeded","message":"Job has reached the specified backoff limit"},
			{"type":"Failed","status":"True","reason":"BackoffLimitExceeded","message":"Job has reached the specified backoff limit"}]}`, "2026-01-02T03:04:05Z"))
		o := b.await("the failure", func(o *bundle.Bundle) bool { return o.Status.State == component.StateError })
		want := "Job " + b.namespace + "/migrate: it has failed: Job has reached the specified backoff limit; skipped because of that: ConfigMap " + b.namespace + "/later"
		ready := meta.FindStatusCondition(o.Status.Conditions, api.ConditionReady)
		if ready == nil || ready.Status != metav1.ConditionFalse || o.Status.Message != want || ready.Message != want {
			t.Errorf("status %+v, want Ready False with %q", o.Status.Status, want)
		}
		b.absent(b.named("later"))
	})
}

// TestHealthRules: what nobody else understands is judged by expressions.
func TestHealthRules(t *testing.T) {
	t.Parallel()
	t.Run("B-18 rules about health", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, func(o *options) {
			o.HealthCompiler = cel.Compiler{}
			o.Health = map[schema.GroupKind]health.Expressions{gauges(): {
				Failed: `status.?phase.orValue("") == "Broken"`, Current: `status.phase == "Fine"`,
			}}
		}).withGauges()
		rule := b.key("health")
		own := gauge("own", rule, `{"inProgress": "status.?level.orValue(0) < 3"}`)
		b.create(gauge("kind"), own)
		b.awaits(`Gauge kind: it has no answer to status.phase == "Fine": no such key: phase`, `Gauge own: it is not ready, because status.?level.orValue(0) < 3`)
		b.status(gauge("own"), `{"level":3,"phase":"Broken"}`) // its own rule replaces that of the kind
		b.awaits(`Gauge kind: it has no answer to status.phase == "Fine": no such key: phase`)
		b.status(gauge("kind"), `{"phase":"Broken"}`)
		want := "Gauge " + b.namespace + `/kind: it has failed, because status.?phase.orValue("") == "Broken"`
		b.await(want, func(o *bundle.Bundle) bool { return o.Status.State == component.StateError && o.Status.Message == want })
		b.status(gauge("kind"), `{"phase":"Fine"}`)
		b.ready()

		for wrong, words := range map[string]string{
			`{"current": "status.phase =="}`: "line 1, column 16: Syntax error",
			`{"ready": "true"}`:              `unknown field "ready"`,
		} {
			b.requests.Reset()
			b.change(gauge("kind"), gauge("own", rule, wrong), configMap("new", "1"))
			b.failed("Gauge own: annotation "+rule, words)
			if sent := b.sent(); sent.Dependents != 0 {
				t.Errorf("%s: %v", wrong, sent)
			}
		}
		b.change(gauge("kind"), own, configMap("new", "1", rule, `{"current": "true"}`))
		b.failed("ConfigMap new: annotation "+rule, "is not possible for kind ConfigMap")

		if racing {
			return // one evaluation that costs as much as is allowed takes 20 seconds
		}
		costly := gauge("own", rule, `{"current": "spec.n.all(a, spec.n.all(b, spec.n.all(c, a + b + c >= 0)))"}`)
		costly.Object["spec"] = map[string]any{"n": slices.Repeat([]any{int64(1)}, 500)}
		b.change(gauge("kind"), costly)
		b.waiting("Gauge "+b.namespace+"/own", "cost limit")
	})
	t.Run("an operator without a compiler", func(t *testing.T) {
		t.Parallel()
		b := newBench(t).withGauges()
		b.create(gauge("a", b.key("health"), `{"current": "true"}`))
		b.failed("component.Options.HealthCompiler")
	})
}

// TestHealthOptions: wrong expressions for kinds are found before the operator starts.
func TestHealthOptions(t *testing.T) {
	c := component.New(component.RenderFunc[*bundle.Bundle](render), options{
		Name: "op.test", HealthCompiler: cel.Compiler{}, Health: map[schema.GroupKind]health.Expressions{
			gauges(): {Current: "state"}, {Kind: "Secret"}: {Current: "true"},
		},
	})
	scheme := runtime.NewScheme()
	if err := bundle.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	_, err := c.Needs(scheme)
	for _, want := range []string{
		"the health of kind Gauge.tests.trimtab.dev: expression current: state: line 1, column 1: undeclared reference to 'state'",
		"the health of kind Secret: has no status and is watched without its contents; remove the rule",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
