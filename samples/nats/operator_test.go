package nats_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/pflag"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/natsserver"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/samples/nats"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
	"github.com/trimtab-dev/trimtab/testenv"
	"github.com/trimtab-dev/trimtab/trace"
)

// rig is the whole operator between a real API server and a real NATS server. It runs as
// a user with the permissions that its manifests ask for, and no others.
type rig struct {
	shop
	t        *testing.T
	nats     *natsserver.Server
	js       jetstream.JetStream // of somebody else
	requests *testenv.Log        // of the operator to Kubernetes
	trace    *trace.Ring
}

func startOperator(t *testing.T, o natsserver.Options, flags ...string) *rig {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	ns, err := natsserver.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ns.Stop)
	r := &rig{shop: openShop(t), t: t, nats: ns, js: foreign(t, ns)}
	r.run(flags...)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what the operator did:\n%s", trace.Transcript(r.trace.Select(trace.Query{})))
		}
	})
	return r
}

// run starts the operator; it ends with the test.
func (r *rig) run(args ...string) {
	r.t.Helper()
	o := nats.Operator()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.Flags(flags)
	if err := flags.Parse(append([]string{"--nats-url", r.nats.URL()}, args...)); err != nil {
		r.t.Fatal(err)
	}
	controllers, err := o.Controllers()
	if err != nil {
		r.t.Fatal(err)
	}
	cfg, log := testenv.Requests(testenv.User(r.t, testenv.Start(r.t), role(r.t, nats.Operator())...))
	r.requests = log
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, o.AddToScheme} {
		if err := add(scheme); err != nil {
			r.t.Fatal(err)
		}
	}
	mgr, err := manager.New(cfg, manager.Options{
		Scheme:     scheme,
		Logger:     logr.Discard(), // what happens is in the trace
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{r.namespace: {}}},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	ring := trace.NewRing(trace.RingOptions{})
	r.trace = ring
	for _, c := range controllers {
		c.Govern(loop.Terms{Adoption: loop.Limit{"": api.AdoptionAlways}})
		c.TraceTo(ring)
		if err := c.SetupWithManager(mgr); err != nil {
			r.t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(r.t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	r.t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			r.t.Errorf("the operator ends: %v", err)
		}
	})
}

// role is what the operator's manifests let it do.
func role(t *testing.T, o operator.Options) []rbacv1.PolicyRule {
	t.Helper()
	objects, err := operator.Manifests(o, operator.ManifestOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range objects {
		if r, ok := obj.(*rbacv1.ClusterRole); ok {
			return r.Rules
		}
	}
	t.Fatal("the manifests hold no ClusterRole")
	return nil
}

func (r *rig) apply(obj client.Object) {
	r.t.Helper()
	obj.SetNamespace(r.namespace)
	if err := r.client.Create(r.t.Context(), obj); err != nil {
		r.t.Fatal(err)
	}
}

// edit changes an object as a user would.
func edited[T client.Object](r *rig, obj T, change func(T)) {
	r.t.Helper()
	if err := r.client.Get(r.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		r.t.Fatal(err)
	}
	before := obj.DeepCopyObject().(client.Object)
	change(obj)
	if err := r.client.Patch(r.t.Context(), obj, client.MergeFrom(before)); err != nil {
		r.t.Fatal(err)
	}
}

// until waits for a state of an object, its newest generation seen.
func until[T external.Object](r *rig, obj T, state string, more ...func(T) bool) T {
	r.t.Helper()
	return testenv.Wait(r.t, r.client, obj, obj.GetName()+" to be "+state, func(o T) bool {
		if o.TrimtabStatus().State != state || o.TrimtabStatus().ObservedGeneration != o.GetGeneration() {
			return false
		}
		return !slices.ContainsFunc(more, func(f func(T) bool) bool { return !f(o) })
	})
}

func (r *rig) remove(obj client.Object) {
	r.t.Helper()
	if err := r.client.Delete(r.t.Context(), obj); err != nil {
		r.t.Fatal(err)
	}
	testenv.Gone(r.t, r.client, obj, obj.GetName()+" to be gone")
}

// message is what a condition says, with its status in front.
func message(o external.Object, condition string) string {
	c := meta.FindStatusCondition(o.TrimtabStatus().Conditions, condition)
	if c == nil {
		return "none"
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

func (r *rig) wantMessage(o external.Object, condition, want string) {
	r.t.Helper()
	if got := message(o, condition); !strings.HasPrefix(got, want) {
		r.t.Errorf("condition %s of %s says %q, want %q", condition, o.GetName(), got, want)
	}
}

// mutations are the requests of the operator that could change a stream or what is in it.
func (r *rig) mutations(stream string) []string {
	var out []string
	for _, c := range r.nats.Mutations() {
		if c.Client == "nats-operator" && c.Stream == stream {
			out = append(out, c.String())
		}
	}
	return out
}

func (r *rig) writes(obj client.Object, plural string) []string {
	var out []string
	for _, w := range r.requests.Writes(plural, r.namespace, obj.GetName()) {
		out = append(out, w.String())
	}
	return out
}

func TestOneLife(t *testing.T) {
	r := startOperator(t, natsserver.Options{})

	cases := map[string]struct {
		obj    external.Object
		change func(client.Object)
		plural string
		stream string
		calls  []string
	}{
		"stream": {
			obj:    stream("orders", v1alpha1.StreamSpec{Subjects: []string{"orders.>"}, MaxMsgs: new(int64(10))}),
			change: func(o client.Object) { o.(*v1alpha1.Stream).Spec.MaxMsgs = new(int64(20)) },
			plural: "streams", stream: "orders",
			calls: []string{"STREAM.CREATE orders", "STREAM.UPDATE orders", "STREAM.DELETE orders"},
		},
		"bucket": {
			obj:    keyValue("settings", v1alpha1.KeyValueSpec{History: new(int64(2))}),
			change: func(o client.Object) { o.(*v1alpha1.KeyValue).Spec.History = new(int64(5)) },
			plural: "keyvalues", stream: "KV_settings",
			calls: []string{"STREAM.CREATE KV_settings", "STREAM.UPDATE KV_settings", "STREAM.DELETE KV_settings"},
		},
		"consumer": {
			obj:    consumer("billing", "base", v1alpha1.ConsumerSpec{MaxDeliver: new(2)}),
			change: func(o client.Object) { o.(*v1alpha1.Consumer).Spec.MaxDeliver = new(5) },
			plural: "consumers", stream: "base",
			calls: []string{"CONSUMER.CREATE base/billing", "CONSUMER.CREATE base/billing", "CONSUMER.DELETE base/billing"},
		},
	}
	if _, err := r.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "base"}); err != nil {
		t.Fatal(err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := r.in(t)
			r.apply(tc.obj)
			until(r, tc.obj, "Succeeded")
			edited(r, tc.obj, func(o external.Object) { tc.change(o) })
			until(r, tc.obj, "Succeeded")
			r.remove(tc.obj)

			wantDiff(t, "what NATS was asked to change", tc.calls, r.mutations(tc.stream))
			// The last write is noted once it is answered, which is after the object is gone.
			eventually(t.Context(), t, "four Kubernetes writes", func() bool { return len(r.writes(tc.obj, tc.plural)) >= 4 })
			if w := r.writes(tc.obj, tc.plural); len(w) != 4 {
				t.Errorf("%d Kubernetes writes, want finalizer with record, status, status, finalizer:\n%s", len(w), strings.Join(w, "\n"))
			}
		})
	}
	if left := r.left(); !slices.Equal(left, []string{"base"}) {
		t.Errorf("left in NATS: %v", left)
	}
}

// in is the rig for a subtest.
func (r *rig) in(t *testing.T) *rig {
	t.Helper()
	sub := *r
	sub.t = t
	return &sub
}

func (r *rig) left() []string {
	r.t.Helper()
	var out []string
	names := r.js.StreamNames(r.t.Context())
	for n := range names.Name() {
		out = append(out, n)
	}
	if names.Err() != nil {
		r.t.Fatal(names.Err())
	}
	slices.Sort(out)
	return out
}

func TestOperator(t *testing.T) {
	r := startOperator(t, natsserver.Options{})

	t.Run("a consumer waits for its stream, is not failed, and goes on by event", func(t *testing.T) {
		r := r.in(t)
		cons := consumer("waiting", "", v1alpha1.ConsumerSpec{StreamRef: &v1alpha1.StreamRef{Name: "awaited"}})
		r.apply(cons)
		cons = until(r, cons, "Pending", func(c *v1alpha1.Consumer) bool { return strings.Contains(message(c, api.ConditionReady), "awaited") })
		r.wantMessage(cons, api.ConditionReady, "False DependenciesNotReady: waiting for Stream")
		if got := message(cons, api.ConditionFailed); strings.HasPrefix(got, "True") {
			t.Errorf("waiting counts as failed: %s", got)
		}
		str := stream("awaited", v1alpha1.StreamSpec{})
		r.apply(str)
		until(r, str, "Succeeded")
		until(r, cons, "Succeeded")
		r.remove(cons)
		r.remove(str)
	})

	t.Run("a refused stream fails with NATS's reason, without a hot loop, and recovers", func(t *testing.T) {
		r := r.in(t)
		if _, err := r.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "other", Subjects: []string{"taken.>"}}); err != nil {
			t.Fatal(err)
		}
		overlap := stream("overlap", v1alpha1.StreamSpec{Subjects: []string{"taken.x"}})
		cycle := stream("cycle", v1alpha1.StreamSpec{Subjects: []string{"cy"}, Republish: &v1alpha1.Republish{Destination: "cy"}})
		r.apply(overlap)
		r.apply(cycle)
		overlap = until(r, overlap, "Failed")
		r.wantMessage(overlap, api.ConditionReady, `False CreateConflict: cannot create stream "overlap": NATS refuses: subjects overlap with an existing stream (error 10065); choose other subjects`)
		cycle = until(r, cycle, "Failed")
		r.wantMessage(cycle, api.ConditionReady, `False CreateInvalid: cannot create stream "cycle": NATS refuses: stream configuration for republish destination forms a cycle`)

		eventually(t.Context(), t, "the overlapping stream is tried a third time", func() bool { return len(r.mutations("overlap")) == 3 })
		times := r.times("overlap")
		// A busy machine comes late, never early.
		if first, second := times[1].Sub(times[0]), times[2].Sub(times[1]); first < 900*time.Millisecond || second < 1800*time.Millisecond {
			t.Errorf("tried again after %s and then %s; want 1 s and then 2 s, or more", first, second)
		}
		wantDiff(t, "what only a new spec can help", []string{
			"STREAM.CREATE cycle refused: stream configuration for republish destination forms a cycle (10052)",
		}, r.mutations("cycle"))

		if err := r.js.DeleteStream(t.Context(), "other"); err != nil {
			t.Fatal(err)
		}
		until(r, overlap, "Succeeded")
		edited(r, cycle, func(s *v1alpha1.Stream) { s.Spec.Republish.Destination = "elsewhere.>" })
		until(r, cycle, "Succeeded")
		r.remove(overlap)
		r.remove(cycle)
	})

	t.Run("E1-14 a stream of somebody else is left alone until the user says so", func(t *testing.T) {
		r := r.in(t)
		if _, err := r.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "theirs", MaxMsgs: 5}); err != nil {
			t.Fatal(err)
		}
		obj := stream("theirs", v1alpha1.StreamSpec{MaxMsgs: new(int64(7))})
		r.apply(obj)
		obj = until(r, obj, "Failed")
		r.wantMessage(obj, api.ConditionReady, `False NotOurs: stream "theirs" exists, and nothing shows that it belongs to this object; set annotation trimtab.dev/adoption to "always"`)
		wantDiff(t, "what NATS was asked to change", []string(nil), r.mutations("theirs"))

		edited(r, obj, func(s *v1alpha1.Stream) { s.Annotations[api.AnnotationAdoption] = "always" })
		until(r, obj, "Succeeded")
		wantDiff(t, "what NATS was asked to change: the mark, then the rest", []string{"STREAM.UPDATE theirs", "STREAM.UPDATE theirs"}, r.mutations("theirs"))
		r.remove(obj)
	})

	t.Run("re-creation is refused, with the way out, until it is allowed", func(t *testing.T) {
		r := r.in(t)
		obj := stream("moving", v1alpha1.StreamSpec{Storage: new(v1alpha1.Storage("file"))})
		r.apply(obj)
		until(r, obj, "Succeeded")
		if _, err := r.js.Publish(t.Context(), "moving", []byte("precious")); err != nil {
			t.Fatal(err)
		}
		edited(r, obj, func(s *v1alpha1.Stream) { s.Spec.Storage = new(v1alpha1.Storage("memory")) })
		obj = until(r, obj, "Failed")
		r.wantMessage(obj, api.ConditionReady, "True")
		r.wantMessage(obj, api.ConditionFailed, `True Immutable: stream "moving" cannot be changed: spec.storage "file" → "memory"; revert the spec, or set spec.recreate to Allowed`)
		if s, err := r.js.Stream(t.Context(), "moving"); err != nil || s.CachedInfo().State.Msgs != 1 {
			t.Fatalf("the stream was touched: %v", err)
		}
		edited(r, obj, func(s *v1alpha1.Stream) { s.Spec.Recreate = v1alpha1.RecreateAllowed })
		obj = until(r, obj, "Succeeded")
		if obj.Status.Storage != "memory" || obj.Status.External.Incarnation != 2 {
			t.Errorf("storage %s, incarnation %d; want the second, in memory", obj.Status.Storage, obj.Status.External.Incarnation)
		}
		r.remove(obj)
	})

	t.Run("what was deleted in NATS does not hold its object", func(t *testing.T) {
		r := r.in(t)
		obj := stream("vanished", v1alpha1.StreamSpec{})
		r.apply(obj)
		until(r, obj, "Succeeded")
		if err := r.js.DeleteStream(t.Context(), "vanished"); err != nil {
			t.Fatal(err)
		}
		r.remove(obj)
	})

	t.Run("E1-12 consumers go with their stream", func(t *testing.T) {
		r := r.in(t)
		str := stream("parent", v1alpha1.StreamSpec{})
		cons := consumer("child", "", v1alpha1.ConsumerSpec{StreamRef: &v1alpha1.StreamRef{Name: "parent"}})
		r.apply(str)
		r.apply(cons)
		until(r, cons, "Succeeded")
		r.remove(str)
		r.remove(cons)
		told := r.requests.Writes("consumers", cons.Namespace, cons.Name)
		for _, q := range told {
			var now v1alpha1.Consumer
			if err := json.Unmarshal(q.Body, &now); err == nil && meta.IsStatusConditionTrue(now.Status.Conditions, api.ConditionFailed) {
				t.Errorf("a consumer that goes with its stream is told to have failed: %s", q.Body)
			}
		}
		if len(told) < 3 {
			t.Errorf("%d writes to the consumer were seen, want its finalizer, its status and its end", len(told))
		}
	})

	t.Run("what NATS settles itself does not keep a stream from being ready", func(t *testing.T) {
		r := r.in(t)
		origin := stream("settled", v1alpha1.StreamSpec{AllowDirect: new(false)})
		copied := stream("settled-copy", v1alpha1.StreamSpec{Mirror: &v1alpha1.StreamSource{Name: "settled"}, MirrorDirect: new(true)})
		closed := stream("settled-closed", v1alpha1.StreamSpec{Sealed: new(true), DenyDelete: new(false)})
		for _, obj := range []*v1alpha1.Stream{origin, copied, closed} {
			r.apply(obj)
			got := until(r, obj, "Succeeded")
			r.wantMessage(got, api.ConditionReady, "True ")
			r.wantMessage(got, api.ConditionFailed, "none")
		}
		for _, obj := range []*v1alpha1.Stream{copied, closed, origin} {
			r.remove(obj)
		}
	})

	t.Run("an orphaned stream stays, without our mark", func(t *testing.T) {
		r := r.in(t)
		obj := stream("kept", v1alpha1.StreamSpec{})
		obj.Annotations = map[string]string{api.AnnotationDeletion: "orphan"}
		r.apply(obj)
		until(r, obj, "Succeeded")
		r.remove(obj)
		s, err := r.js.Stream(t.Context(), "kept")
		if err != nil {
			t.Fatal(err)
		}
		wantDiff(t, "mark", external.Mark(nil), external.MarkOf(s.CachedInfo().Config.Metadata))
		if err := r.js.DeleteStream(t.Context(), "kept"); err != nil {
			t.Fatal(err)
		}
	})

	t.Run("a sealed stream takes a create and an update", func(t *testing.T) {
		r := r.in(t)
		obj := stream("closed", v1alpha1.StreamSpec{Sealed: new(true), MaxAge: lasting(time.Hour)})
		r.apply(obj)
		until(r, obj, "Succeeded")
		r.remove(obj)
		wantDiff(t, "what NATS was asked to change", []string{"STREAM.CREATE closed", "STREAM.UPDATE closed", "STREAM.DELETE closed"}, r.mutations("closed"))
	})

	if left := r.left(); len(left) > 0 {
		t.Errorf("left in NATS: %v", left)
	}
}

// times are when the operator tried to change a stream.
func (r *rig) times(stream string) []time.Time {
	var out []time.Time
	for _, c := range r.nats.Mutations() {
		if c.Client == "nats-operator" && c.Stream == stream {
			out = append(out, c.Time)
		}
	}
	return out
}

func TestOperatorRepairsDrift(t *testing.T) {
	r := startOperator(t, natsserver.Options{}, "--drift-interval", "300ms")
	str := stream("orders", v1alpha1.StreamSpec{MaxMsgs: new(int64(100))})
	cons := consumer("billing", "", v1alpha1.ConsumerSpec{StreamRef: &v1alpha1.StreamRef{Name: "orders"}})
	r.apply(str)
	r.apply(cons)
	until(r, str, "Succeeded")
	until(r, cons, "Succeeded")

	t.Run("E0-25 a changed limit is set back by one update", func(t *testing.T) {
		r := r.in(t)
		edit(t, r.js, "orders", func(c *jetstream.StreamConfig) { c.MaxMsgs = 5 })
		eventually(t.Context(), t, "the limit is set back", func() bool {
			s, err := r.js.Stream(t.Context(), "orders")
			return err == nil && s.CachedInfo().Config.MaxMsgs == 100
		})
		until(r, str, "Succeeded")
		wantDiff(t, "what NATS was asked to change", []string{"STREAM.CREATE orders", "CONSUMER.CREATE orders/billing", "STREAM.UPDATE orders"}, r.mutations("orders"))
	})

	t.Run("a deleted consumer is created again", func(t *testing.T) {
		r := r.in(t)
		if err := r.js.DeleteConsumer(t.Context(), "orders", "billing"); err != nil {
			t.Fatal(err)
		}
		eventually(t.Context(), t, "the consumer is back", func() bool {
			_, err := r.js.Consumer(t.Context(), "orders", "billing")
			return err == nil
		})
		until(r, cons, "Succeeded", func(c *v1alpha1.Consumer) bool { return c.Status.External.Incarnation == 2 })
	})

	t.Run("looking costs Kubernetes nothing", func(t *testing.T) {
		r := r.in(t)
		r.requests.Reset()
		from, changes := len(r.nats.Calls()), len(r.nats.Mutations())
		eventually(t.Context(), t, "ten looks went by", func() bool { return len(r.nats.Calls())-from >= 10 })
		for _, q := range r.requests.All() {
			if q.Verb != "watch" && q.Resource != "events" { // events of what was before come late
				t.Errorf("an idle operator asks Kubernetes: %s", q)
			}
		}
		for _, c := range r.nats.Mutations()[changes:] {
			t.Errorf("an idle operator changes NATS: %s", c)
		}
	})
	r.remove(cons)
	r.remove(str)
}

func TestOperatorWithoutNATS(t *testing.T) {
	dir := t.TempDir()
	r := startOperator(t, natsserver.Options{Dir: dir})
	obj := stream("orders", v1alpha1.StreamSpec{MaxMsgs: new(int64(100))})
	r.apply(obj)
	until(r, obj, "Succeeded")
	port := r.nats.Port()
	r.nats.Stop()

	edited(r, obj, func(s *v1alpha1.Stream) { s.Spec.MaxMsgs = new(int64(200)) })
	seen := testenv.Wait(t, r.client, obj, "the stream to show that NATS is away", func(s *v1alpha1.Stream) bool {
		return strings.HasPrefix(message(s, api.ConditionFailed), "True")
	})
	r.wantMessage(seen, api.ConditionFailed, `True ObserveFailed: cannot observe stream "orders": NATS at nats://127.0.0.1`)
	r.wantMessage(seen, api.ConditionReady, "True Available")

	again, err := natsserver.Start(natsserver.Options{Dir: dir, Port: port})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(again.Stop)
	r.nats, r.js = again, foreign(t, again)
	until(r, obj, "Succeeded", func(s *v1alpha1.Stream) bool { return s.Status.AppliedGeneration == s.Generation })
	s, err := r.js.Stream(t.Context(), "orders")
	if err != nil || s.CachedInfo().Config.MaxMsgs != 200 {
		t.Errorf("the change did not arrive: %v", err)
	}
	r.remove(obj)
}

// NATS gets a new password, and the Secret later: all that takes is the new password.
func TestOperatorWhosePasswordIsRotated(t *testing.T) {
	password := filepath.Join(t.TempDir(), "password")
	write(t, password, "one")
	r := startOperator(t, natsserver.Options{Users: users("one")}, "--nats-user", "operator", "--nats-password", "file:"+password)
	obj := stream("orders", v1alpha1.StreamSpec{MaxMsgs: new(int64(100))})
	r.apply(obj)
	until(r, obj, "Succeeded")

	if err := r.nats.SetUsers(users("two")); err != nil {
		t.Fatal(err)
	}
	turned := r.nats.Refused()
	eventually(t.Context(), t, "NATS turns the operator away three times", func() bool { return r.nats.Refused() >= turned+3 })
	edited(r, obj, func(s *v1alpha1.Stream) { s.Spec.MaxMsgs = new(int64(200)) })
	seen := testenv.Wait(t, r.client, obj, "the stream to show why", func(s *v1alpha1.Stream) bool {
		return strings.HasPrefix(message(s, api.ConditionFailed), "True")
	})
	if got := message(seen, api.ConditionFailed); !strings.Contains(got, "refuses the operator's credentials: Authorization Violation") || strings.Contains(got, "one") {
		t.Errorf("it says %q", got)
	}
	write(t, password, "two")
	until(r, obj, "Succeeded", func(s *v1alpha1.Stream) bool { return s.Status.AppliedGeneration == s.Generation })
	r.remove(obj)
}

// A restart of NATS is noticed at once: what it lost is made again long before the next look.
func TestOperatorAfterARestartOfNATS(t *testing.T) {
	dir := t.TempDir()
	r := startOperator(t, natsserver.Options{Dir: dir})
	kept := stream("kept", v1alpha1.StreamSpec{})
	lost := stream("lost", v1alpha1.StreamSpec{Storage: new(v1alpha1.Storage("memory"))})
	r.apply(kept)
	r.apply(lost)
	until(r, kept, "Succeeded")
	until(r, lost, "Succeeded")
	port := r.nats.Port()
	r.nats.Stop()
	again, err := natsserver.Start(natsserver.Options{Dir: dir, Port: port})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(again.Stop)
	r.nats, r.js = again, foreign(t, again)

	until(r, lost, "Succeeded", func(s *v1alpha1.Stream) bool { return s.Status.External.Incarnation == 2 })
	eventually(t.Context(), t, "the stream that was kept is looked at, too", func() bool {
		return slices.ContainsFunc(again.Calls(), func(c natsserver.Call) bool { return c.Op == "STREAM.INFO" && c.Stream == "kept" })
	})
	wantDiff(t, "what NATS was asked to change", []string{"STREAM.CREATE lost"}, append(r.mutations("kept"), r.mutations("lost")...))
	r.remove(kept)
	r.remove(lost)
}

// An operator that is sent to another NATS makes nothing anew there, and lets go of nothing.
// What it is called decides, not where it is.
func TestOperatorOfAnotherNATS(t *testing.T) {
	first, err := natsserver.Start(natsserver.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(first.Stop)
	second, err := natsserver.Start(natsserver.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(second.Stop)
	r := &rig{shop: openShop(t), t: t, nats: first, js: foreign(t, first)}
	obj := stream("orders", v1alpha1.StreamSpec{})

	t.Run("made at one", func(t *testing.T) {
		r := r.in(t)
		r.run()
		r.apply(obj)
		until(r, obj, "Succeeded")
	})
	t.Run("not touched from another, nor made there", func(t *testing.T) {
		r := r.in(t)
		r.nats = second
		r.run()
		got := until(r, obj, "Failed")
		r.wantMessage(got, api.ConditionFailed, `True EndpointChanged: stream "orders" was created at 127.0.0.1:`)
		wantDiff(t, "what the other NATS was asked to change", []string(nil), r.mutations("orders"))
	})
	t.Run("known by its name at another address", func(t *testing.T) {
		r := r.in(t)
		r.run("--nats-url", strings.Replace(first.URL(), "127.0.0.1", "localhost", 1), "--nats-name", strings.TrimPrefix(first.URL(), "nats://"))
		until(r, obj, "Succeeded")
		r.remove(obj)
	})
}
