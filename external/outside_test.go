package external_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

// garbled are things of which the API tells in bytes that are no text.
type garbled struct{ named }

func (garbled) Observe(ctx context.Context, r external.ObserveRequest[*thing.Thing, *cloudClient]) (observation, error) {
	o, err := named{}.Observe(ctx, r)
	o.External, o.Have.Host = "ON\xffLINE", "host\xff"
	return o, err
}

// TestGarbledStatus: what an author shows of an API that answers in bytes which are no text
// is written once, and not at every observation.
func TestGarbledStatus(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, garbled{})
	w.create()
	got := w.ready()
	if got.Status.External.Status != "ON\uFFFDLINE" || got.Status.Host != "host\uFFFD" {
		t.Errorf("status %+v", got.Status)
	}
	before := len(w.writes("a"))
	for range 3 {
		w.settled("a") // each asks for an observation by an annotation that is echoed: one write
	}
	if now := len(w.writes("a")); now != before+3 {
		t.Errorf("writes for three observations: %v", w.writes("a")[before:])
	}
}

// misnamed are things whose names are no text, or hold what is none of a name.
type misnamed struct {
	things
	name string
}

func (m misnamed) ExternalName(*thing.Thing) (string, error) { return m.name, nil }

func TestNameThatCannotBeRecorded(t *testing.T) {
	t.Parallel()
	for why, name := range map[string]string{"no UTF-8": "a\xffb", "longer than any record": strings.Repeat("x", 5000)} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			w := newOperatorTest(t, misnamed{name: name})
			w.create()
			got := w.failing("InvalidName")
			if !strings.Contains(got.Status.Message, "ExternalName") {
				t.Errorf("message %q", got.Status.Message)
			}
			if n := w.cloud.count(http.MethodPost); n != 0 {
				t.Errorf("%d creates", n)
			}
		})
	}
}

// seesaw are things of which an update of one field resets another one.
type seesaw struct{ named }

func (seesaw) Compare(r external.CompareRequest[*thing.Thing, item]) external.Changes {
	return external.Diff(
		external.Field("spec.size", r.Object.Spec.Size, r.Have.Size),
		external.Field("spec.version", r.Object.Spec.Version, r.Have.Version),
	)
}

func (seesaw) Create(ctx context.Context, r external.CreateRequest[*thing.Thing, *cloudClient]) (external.CreateResponse[item], error) {
	return external.CreateResponse[item]{}, r.Client.call(ctx, http.MethodPost, r.ID, &item{Size: r.Object.Spec.Size, Tags: r.Mark}, nil)
}

func (seesaw) Update(ctx context.Context, r external.UpdateRequest[*thing.Thing, *cloudClient, item]) (external.UpdateResponse[item], error) {
	if r.Changes.Has("spec.size") {
		r.Have.Size, r.Have.Version = r.Object.Spec.Size, ""
	} else {
		r.Have.Size, r.Have.Version = 0, r.Object.Spec.Version
	}
	return external.UpdateResponse[item]{}, r.Client.call(ctx, http.MethodPut, r.ID, &r.Have, nil)
}

// TestSeesaw: two fields of a spec exclude each other, and each update is accepted and brings
// the other difference back.
func TestSeesaw(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, seesaw{}, drifting(20*time.Millisecond))
	w.create(func(o *thing.Thing) { o.Spec.Version = "2" })
	w.failing("NotConverging")
	w.settled("a")
	w.settled("a")
	if n := w.cloud.count(http.MethodPut); n > 6 {
		t.Errorf("%d updates, want at most 3 of each kind", n)
	}
}

// oneTier are things that the API makes in a tier of its own.
type oneTier struct{ named }

func (oneTier) Create(ctx context.Context, r external.CreateRequest[*thing.Thing, *cloudClient]) (external.CreateResponse[item], error) {
	return external.CreateResponse[item]{}, r.Client.call(ctx, http.MethodPost, r.ID, &item{Size: r.Object.Spec.Size, Tier: "gold", Tags: r.Mark}, nil)
}

// TestRecreationThatChangesNothing: each new thing is as the one before. That is not gone on
// with for ever, for each takes away what the one before held.
func TestRecreationThatChangesNothing(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, oneTier{}, drifting(20*time.Millisecond))
	w.create(func(o *thing.Thing) { o.Spec.Tier = "tin" })
	got := w.failing("NotConverging")
	if !strings.Contains(got.Status.Message, "spec.tier") {
		t.Errorf("message %q", got.Status.Message)
	}
	w.settled("a")
	w.settled("a")
	if n := w.cloud.count(http.MethodDelete); n > 3 {
		t.Errorf("%d deletes of the thing, want at most 3", n)
	}
}

// TestLongSecretInSpec: a value is cut to be shown after what is secret in it is hidden.
func TestLongSecretInSpec(t *testing.T) {
	t.Parallel()
	long := "postgres://app:" + strings.Repeat("hunter2", 15) + "@db/x"
	for name, c := range map[string]external.Change{
		"text": {Path: "spec.origin", Want: long},
		"list": {Path: "spec.origins", Want: []string{"a", long}},
		"key":  {Path: "spec.env", Want: map[string]string{"PASSWORD": strings.Repeat("hunter2", 15)}},
		"name": {Path: "spec.login.password", Want: "hunter2", Have: "hunter22"},
		"side": {Path: `spec.users["a"].apiKey`, Want: "", Have: "hunter2"},
	} {
		if got := c.String(); strings.Contains(got, "hunter2") {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, c := range []external.Change{{Path: "spec.tokenLimit", Want: "7"}, {Path: "spec.maxToken", Want: 7}, {Path: "spec.secretRef", Want: "7"}} {
		if got := c.String(); !strings.Contains(got, "7") {
			t.Errorf("%s: no secret", got)
		}
	}
}

// TestNameThatNeverComes: that ExternalName does not return is no mistake in the spec.
func TestNameIsNeverValid(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	d := &wild{method: "ExternalName", how: func() { <-hold }}
	d.tame()
	w := newOperatorTest(t, d)
	w.create()
	w.ready()
	d.mu.Lock()
	d.tamed = false
	d.mu.Unlock()
	w.poke("observe")
	got := w.await("a word about ExternalName", func(o *thing.Thing) bool { return strings.Contains(o.Status.Message, "ExternalName") })
	if failed := condition(got, "Failed"); failed.Reason != "CallHangs" || is(got, "Stalled", "True") || !is(got, "Ready", "True") {
		t.Errorf("status %+v", got.Status)
	}
	d.tame()
	close(hold)
	w.await("the operator to go on", func(o *thing.Thing) bool { return o.Status.State == "Succeeded" })
}

// TestSpecOfADependencyChanges: as long as it stays ready, those who depend on it and have what they
// stand for neither wait nor write anything, also if they are observed in between.
func TestSpecOfADependencyChanges(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, named{})
	w.createAs("b")
	w.create(needs("b"))
	w.ready()
	arrived, release := make(chan struct{}), make(chan struct{})
	w.cloud.with(func() {
		w.cloud.before = func(method, name string) {
			if method == http.MethodPut && name == "b" {
				close(arrived)
				<-release
			}
		}
	})
	writes := len(w.writes("a"))
	w.change("b", func(o *thing.Thing) { o.Spec.Size = 2 })
	<-arrived
	if got := w.settled("a"); got.Status.State != "Succeeded" { // each writes what echoes its annotation
		t.Errorf("in between: %+v", got.Status)
	}
	close(release)
	w.awaitAs("b", "Ready for the new spec", func(o *thing.Thing) bool {
		return is(o, "Ready", "True") && condition(o, "Ready").ObservedGeneration == 2
	})
	w.settled("a")
	if now := w.writes("a"); len(now) != writes+2 {
		t.Errorf("writes to what depends on it: %v", now[writes:])
	}
}

// TestEndpointWithASecret: what stands on every object holds no password, and the driver's
// mistake is reported.
func TestEndpointWithASecret(t *testing.T) {
	t.Parallel()
	for why, endpoint := range map[string]string{
		"a password": "postgres://app:hunter2@db:5432/shop", "no UTF-8": "db\xff", "longer than can be recorded": strings.Repeat("x", 5000),
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			w := newOperatorTest(t, named{}, func(o *options) {
				o.Endpoint = func(context.Context, *cloudClient) (string, error) { return endpoint, nil }
			})
			w.create()
			got := w.failing("ConnectFailed")
			if !strings.Contains(got.Status.Message, "Options.Endpoint returns") || strings.Contains(fmt.Sprint(got), "hunter2") {
				t.Errorf("object %+v", got)
			}
			if n := w.cloud.count(http.MethodPost); n != 0 {
				t.Errorf("%d creates", n)
			}
		})
	}
}
