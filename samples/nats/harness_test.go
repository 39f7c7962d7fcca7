package nats_test

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/natsserver"
	"github.com/trimtab-dev/trimtab/samples/nats"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
)

// driver is all that a driver of this operator can do.
//
//nolint:interfacebloat // each part is an interface of its own
type driver[T client.Object, O any] interface {
	external.Driver[T, *nats.Client, O]
	external.Updater[T, *nats.Client, O]
	external.Unmarker[T, *nats.Client]
	external.Marker[T, *nats.Client]
	external.Namer[T]
	external.Reflector[T, O]
	external.Classifier
}

var (
	_ driver[*v1alpha1.Stream, *nats.LiveStream]     = nats.Streams{}
	_ driver[*v1alpha1.Consumer, *nats.LiveConsumer] = nats.Consumers{}
	_ driver[*v1alpha1.KeyValue, *nats.LiveStream]   = nats.KeyValues{}
	_ external.Dependent[*v1alpha1.Consumer]         = nats.Consumers{}
)

// bench drives one kind against a real server, step by step, as the engine would.
type bench[T client.Object, O any] struct {
	driver driver[T, O]
	client *nats.Client
	// config returns the configuration as the server reported it.
	config func(O) json.RawMessage
}

var testMark = external.Mark{
	external.MarkUID: "4711", external.MarkKind: "Test.example.org", external.MarkNamespace: "default",
	external.MarkName: "test", external.MarkIncarnation: "1",
}

func streams(c *nats.Client) bench[*v1alpha1.Stream, *nats.LiveStream] {
	return bench[*v1alpha1.Stream, *nats.LiveStream]{nats.Streams{}, c, func(l *nats.LiveStream) json.RawMessage { return l.Reported }}
}

func keyValues(c *nats.Client) bench[*v1alpha1.KeyValue, *nats.LiveStream] {
	return bench[*v1alpha1.KeyValue, *nats.LiveStream]{nats.KeyValues{}, c, func(l *nats.LiveStream) json.RawMessage { return l.Reported }}
}

func consumers(c *nats.Client) bench[*v1alpha1.Consumer, *nats.LiveConsumer] {
	return bench[*v1alpha1.Consumer, *nats.LiveConsumer]{nats.Consumers{}, c, func(l *nats.LiveConsumer) json.RawMessage { return l.Reported }}
}

func (b bench[T, O]) id(t *testing.T, obj T) string {
	t.Helper()
	name, err := b.driver.ExternalName(obj)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func (b bench[T, O]) create(t *testing.T, obj T) {
	t.Helper()
	if err := b.tryCreate(t, obj); err != nil {
		t.Fatal(err)
	}
}

func (b bench[T, O]) tryCreate(t *testing.T, obj T) error {
	t.Helper()
	return b.createAs(t, obj, testMark)
}

func (b bench[T, O]) createAs(t *testing.T, obj T, mark external.Mark) error {
	t.Helper()
	_, err := b.driver.Create(t.Context(), external.CreateRequest[T, *nats.Client]{
		Client: b.client, Object: obj, ID: b.id(t, obj), Incarnation: 1, Mark: mark,
	})
	return err
}

func (b bench[T, O]) delete(t *testing.T, obj T) error {
	t.Helper()
	_, err := b.driver.Delete(t.Context(), external.DeleteRequest[T, *nats.Client]{Client: b.client, Object: obj, ID: b.id(t, obj), Incarnation: 1})
	return err
}

func (b bench[T, O]) tryObserve(t *testing.T, obj T) (external.Observation[O], error) {
	t.Helper()
	return b.driver.Observe(t.Context(), external.ObserveRequest[T, *nats.Client]{Client: b.client, Object: obj, ID: b.id(t, obj), Incarnation: 1})
}

func (b bench[T, O]) observe(t *testing.T, obj T) external.Observation[O] {
	t.Helper()
	seen, err := b.tryObserve(t, obj)
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

func (b bench[T, O]) changes(t *testing.T, obj T) external.Changes {
	t.Helper()
	return b.compare(obj, b.observe(t, obj).Have)
}

func (b bench[T, O]) compare(obj T, have O) external.Changes {
	return b.driver.Compare(external.CompareRequest[T, O]{Object: obj, Have: have})
}

func (b bench[T, O]) tryUpdate(t *testing.T, obj T) error {
	t.Helper()
	have := b.observe(t, obj).Have
	_, err := b.driver.Update(t.Context(), external.UpdateRequest[T, *nats.Client, O]{
		Client: b.client, Object: obj, ID: b.id(t, obj), Incarnation: 1, Have: have, Changes: b.compare(obj, have),
	})
	return err
}

// converge updates until nothing that an update can do is left.
func (b bench[T, O]) converge(t *testing.T, obj T) {
	t.Helper()
	for range 2 {
		if len(b.changes(t, obj).With(external.InPlace)) == 0 {
			break
		}
		if err := b.tryUpdate(t, obj); err != nil {
			t.Fatal(err)
		}
	}
	if left := b.changes(t, obj); len(left) != len(left.With(external.Ignored)) {
		t.Fatalf("after an update still: %s", left)
	}
}

// startNATS starts a server and connects as the operator does.
func startNATS(t *testing.T, o natsserver.Options) (*natsserver.Server, *nats.Client) {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	s, err := natsserver.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s, connect(t, s.URL())
}

func connect(t *testing.T, url string) *nats.Client {
	t.Helper()
	c, err := nats.Connect(nats.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func stream(name string, spec v1alpha1.StreamSpec) *v1alpha1.Stream {
	return &v1alpha1.Stream{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: spec}
}

func keyValue(name string, spec v1alpha1.KeyValueSpec) *v1alpha1.KeyValue {
	return &v1alpha1.KeyValue{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: spec}
}

func consumer(name, stream string, spec v1alpha1.ConsumerSpec) *v1alpha1.Consumer {
	spec.Stream = stream
	return &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: spec}
}

func lasting(d time.Duration) *v1alpha1.Duration {
	return &v1alpha1.Duration{Duration: metav1.Duration{Duration: d}}
}

func at(t time.Time) *metav1.Time { return new(metav1.NewTime(t)) }

// wantNothing fails for any difference.
func wantNothing(t *testing.T, what string, got external.Changes) {
	t.Helper()
	if len(got) > 0 {
		t.Errorf("%s: %s", what, got)
	}
}

func wantDiff(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// leaves flattens a configuration: the path of each value in it. Labels are one value.
func leaves(t *testing.T, config json.RawMessage) map[string]string {
	t.Helper()
	var tree any
	if err := json.Unmarshal(config, &tree); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	var walk func(path string, x any)
	walk = func(path string, x any) {
		switch x := x.(type) {
		case map[string]any:
			if path == "metadata" {
				break
			}
			for k, v := range x {
				walk(strings.TrimPrefix(path+"."+k, "."), v)
			}
			return
		case []any:
			for _, v := range x {
				if _, nested := v.(map[string]any); nested {
					walk(path, v)
				}
			}
		}
		b, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		out[path] = string(b)
	}
	walk("", tree)
	return out
}

// changed adds the paths whose values differ.
func changed(into map[string]bool, before, after map[string]string) {
	for k := range maps.Keys(before) {
		if before[k] != after[k] {
			into[k] = true
		}
	}
	for k := range maps.Keys(after) {
		if before[k] != after[k] {
			into[k] = true
		}
	}
}

// settingsOf are the paths of all values that a configuration of the server's can hold.
func settingsOf(t reflect.Type) []string {
	var out []string
	for f := range t.Fields() {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || tag == "" || tag == "-" {
			continue
		}
		ft := f.Type
		for ft.Kind() == reflect.Pointer || ft.Kind() == reflect.Slice {
			ft = ft.Elem()
		}
		if ft.Kind() != reflect.Struct || ft == reflect.TypeFor[time.Time]() {
			out = append(out, tag)
			continue
		}
		for _, inner := range settingsOf(ft) {
			out = append(out, tag+"."+inner)
		}
	}
	slices.Sort(out)
	return out
}

// specFields are the names of a spec's fields as users write them.
func specFields(t reflect.Type) []string {
	var out []string
	for f := range t.Fields() {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		out = append(out, tag)
	}
	return out
}

// eventually waits for a state that comes from outside.
func eventually(ctx context.Context, t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not so after 2 minutes: %s", what)
		}
	}
}
