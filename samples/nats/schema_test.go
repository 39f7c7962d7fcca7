package nats_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/internal/manifest"
	"github.com/trimtab-dev/trimtab/samples/nats"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
	"github.com/trimtab-dev/trimtab/testenv"
)

// shop is a namespace on a real API server that has the kinds.
type shop struct {
	client    client.WithWatch
	namespace string
}

func openShop(t *testing.T) shop {
	t.Helper()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, nats.CRDs)
	return shop{testenv.Client(t, cfg, v1alpha1.AddToScheme), testenv.Namespace(t, cfg)}
}

// try asks whether the server would take an object.
func (s shop) try(t *testing.T, obj client.Object) error {
	t.Helper()
	obj.SetNamespace(s.namespace)
	return s.client.Create(t.Context(), obj, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
}

// What the schema takes and what it refuses, in its own words.
func TestSchemaRefuses(t *testing.T) {
	s := openShop(t)
	cases := map[string]struct{ why, kind, spec, want string }{
		"name with a dot":               {"NATS has names without", "Stream", `name: a.b`, `spec.name: Invalid value: "a.b": spec.name in body should match`},
		"name with a slash":             {"NATS has names without", "Stream", `name: a/b`, `spec.name: Invalid value: "a/b"`},
		"an unknown retention":          {"a slip of the pen", "Stream", `retention: work-queue`, `supported values: "limits", "interest", "workqueue"`},
		"a limit below -1":              {"NATS would take it for none", "Stream", `maxMsgs: -2`, `should be greater than or equal to -1`},
		"too many replicas":             {"NATS has five at most", "Stream", `replicas: 6`, `should be less than or equal to 5`},
		"a duration in days":            {"Go has no days", "Stream", `maxAge: 1d`, `spec.maxAge: Invalid value: "1d"`},
		"a duration without a unit":     {"of what?", "Stream", `maxAge: "60"`, `spec.maxAge: Invalid value: "60"`},
		"a duration beyond all time":    {"it would break every reader", "Stream", `maxAge: 99999999999999h`, `spec.maxAge`},
		"a very short age":              {"NATS has 100ms at least", "Stream", `maxAge: 1ms`, `use 0s for none, or at least 100ms`},
		"a short delete marker":         {"NATS has 1s at least", "Stream", `subjectDeleteMarkerTtl: 10ms`, `use 0s for none, or at least 1s`},
		"a subject twice":               {"NATS refuses it", "Stream", `subjects: [a, a]`, `Duplicate value: "a"`},
		"a subject with a blank":        {"NATS refuses it", "Stream", `subjects: ["a b"]`, `spec.subjects[0]: Invalid value: "a b"`},
		"a mirror with subjects":        {"one or the other", "Stream", `{mirror: {name: a}, subjects: [b]}`, `a mirror has no subjects and no sources of its own`},
		"a mirror with sources":         {"one or the other", "Stream", `{mirror: {name: a}, sources: [{name: b}]}`, `a mirror has no subjects and no sources of its own`},
		"a mirror that starts at 5":     {"it copies numbers too", "Stream", `{mirror: {name: a}, firstSequence: 5}`, `leave firstSequence out`},
		"a mirror that takes batches":   {"nobody publishes to it", "Stream", `{mirror: {name: a}, allowAtomicPublish: true}`, `a mirror accepts no messages`},
		"a mirror with markers":         {"its numbers would differ", "Stream", `{mirror: {name: a}, subjectDeleteMarkerTtl: 1m}`, `a mirror cannot leave delete markers`},
		"a mirror without a name":       {"of what?", "Stream", `mirror: {filterSubject: a}`, `spec.mirror: Invalid value: name is required`},
		"a source without a name":       {"of what?", "Stream", `sources: [{}]`, `every source needs a name`},
		"a source with two filters":     {"NATS has one or the other", "Stream", `sources: [{name: a, filterSubject: b, subjectTransforms: [{source: c, dest: d}]}]`, `set filterSubject or subjectTransforms, not both`},
		"a source with two starts":      {"which one?", "Stream", `sources: [{name: a, optStartSeq: 1, optStartTime: "2026-01-02T03:04:05Z"}]`, `set optStartSeq or optStartTime, not both`},
		"a source's consumer and start": {"the consumer starts", "Stream", `sources: [{name: a, optStartSeq: 1, consumer: {name: c, deliverSubject: d}}]`, `leave out optStartSeq, optStartTime and filterSubject`},
		"a deliver prefix alone":        {"it belongs to an API", "Stream", `sources: [{name: a, externalDeliverPrefix: b}]`, `externalDeliverPrefix needs externalApiPrefix`},
		"discardPerSubject alone":       {"it needs a limit", "Stream", `discardPerSubject: true`, `discardPerSubject needs discard: new and a maxMsgsPerSubject above 0`},
		"rollups that may not purge":    {"they purge", "Stream", `{denyPurge: true, allowRollup: true}`, `set denyPurge or allowRollup, not both`},
		"a window beyond the age":       {"NATS refuses it", "Stream", `{maxAge: 1m, duplicateWindow: 1h}`, `duplicateWindow cannot be longer than maxAge`},
		"a counter that refuses":        {"it cannot", "Stream", `{allowMsgCounter: true, discard: new}`, `a stream with allowMsgCounter cannot use discard: new`},
		"schedules that refuse":         {"they cannot", "Stream", `{allowMsgSchedules: true, discard: new}`, `a stream with allowMsgSchedules cannot use discard: new or sources`},
		"schedules without rollups":     {"they roll up", "Stream", `{allowMsgSchedules: true, allowRollup: false}`, `allowRollup cannot be false`},
		"markers without TTLs":          {"they are TTLs", "Stream", `{subjectDeleteMarkerTtl: 1m, allowMsgTtl: false}`, `allowMsgTtl cannot be false`},
		"async in memory":               {"there is nothing to flush", "Stream", `{persistMode: async, storage: memory}`, `persistMode: async needs storage: file`},
		"a reserved label":              {"it would be lost", "Stream", `metadata: {trimtab-uid: x}`, `keys that start with _nats. or trimtab- are reserved`},
		"republish to nowhere":          {"whereto?", "Stream", `republish: {source: a}`, `leave republish empty ({}) to switch it off`},
		"an empty transform":            {"a template writes it, and means nothing", "Stream", `subjectTransform: {source: "", dest: ""}`, `to switch the transform off, leave subjectTransform empty ({})`},
		"a republish to nothing":        {"a template writes it, and means nothing", "Stream", `republish: {source: "", destination: ""}`, `spec.republish.destination in body should be at least 1 chars long`},
		"a mirror of nothing":           {"a template writes it, and means nothing", "Stream", `mirror: {name: ""}`, `spec.mirror.name in body should be at least 1 chars long`},
		"an empty cluster":              {"a template writes it, and means nothing", "Stream", `placement: {cluster: ""}`, `for any server, leave placement empty ({})`},
		"a transform to nothing":        {"whereto?", "Stream", `subjectTransform: {source: a}`, `to switch the transform off, leave subjectTransform empty ({})`},
		"an unknown field":              {"a slip of the pen", "Stream", `maxMessages: 5`, `unknown field "spec.maxMessages"`},

		"a consumer of nothing":          {"of what?", "Consumer", `{}`, `set stream, streamRef, or both`},
		"a reference with a dot":         {"NATS has names without", "Consumer", `streamRef: {name: a.b}`, `set stream to the name that the stream has in NATS`},
		"two kinds of filters":           {"one or the other", "Consumer", `{stream: s, filterSubject: a, filterSubjects: [b]}`, `set filterSubject or filterSubjects, not both`},
		"a start without its policy":     {"it would be ignored", "Consumer", `{stream: s, optStartSeq: 5}`, `set optStartSeq and deliverPolicy: byStartSequence together`},
		"a policy without its start":     {"from when?", "Consumer", `{stream: s, deliverPolicy: byStartTime}`, `set optStartTime and deliverPolicy: byStartTime together`},
		"lastPerSubject without filters": {"NATS wants one", "Consumer", `{stream: s, deliverPolicy: lastPerSubject}`, `lastPerSubject needs filterSubject or filterSubjects`},
		"ackWait against backoff":        {"NATS takes the backoff", "Consumer", `{stream: s, ackWait: 1m, backoff: [1s]}`, `backoff replaces ackWait`},
		"more backoffs than deliveries":  {"NATS refuses it", "Consumer", `{stream: s, maxDeliver: 1, backoff: [1s, 2s]}`, `backoff cannot have more steps than maxDeliver`},
		"a backoff in days":              {"Go has no days", "Consumer", `{stream: s, backoff: [1d]}`, `spec.backoff[0]: Invalid value: "1d"`},
		"a push setting alone":           {"it would be refused", "Consumer", `{stream: s, heartbeatInterval: 5s}`, `are for push consumers: set deliverSubject as well`},
		"a group alone":                  {"it would be ignored", "Consumer", `{stream: s, deliverGroup: g}`, `are for push consumers: set deliverSubject as well`},
		"a pull setting on push":         {"it would be refused", "Consumer", `{stream: s, deliverSubject: d, maxWaiting: 5}`, `maxWaiting is for pull consumers`},
		"priorities on push":             {"it would be refused", "Consumer", `{stream: s, deliverSubject: d, priorityPolicy: overflow, priorityGroups: [a]}`, `priority groups are for pull consumers`},
		"flow control without a beat":    {"it needs one", "Consumer", `{stream: s, deliverSubject: d, flowControl: true}`, `flowControl needs heartbeatInterval`},
		"a policy without groups":        {"of whom?", "Consumer", `{stream: s, priorityPolicy: overflow}`, `set priorityPolicy and priorityGroups together`},
		"a pinned TTL alone":             {"it would be refused", "Consumer", `{stream: s, pinnedTtl: 1m}`, `pinnedTtl needs priorityPolicy: pinnedClient`},
		"a wild deliver subject":         {"whereto?", "Consumer", `{stream: s, deliverSubject: "a.*"}`, `spec.deliverSubject: Invalid value: "a.*"`},
		"a sample of 200%":               {"of what?", "Consumer", `{stream: s, sampleFreq: 200%}`, `spec.sampleFreq: Invalid value: "200%"`},
		"no acks pending at all":         {"NATS takes 0 for its default", "Consumer", `{stream: s, maxAckPending: 0}`, `use -1 for no limit, or leave it out for the server's default`},
		"flow control's acks on pull":    {"they are its answers", "Consumer", `{stream: s, ackPolicy: flowControl}`, `ackPolicy: flowControl needs deliverSubject, flowControl, heartbeatInterval: 1s`},
		"acks pending that nobody sends": {"it would be refused", "Consumer", `{stream: s, deliverSubject: d, ackPolicy: none, maxAckPending: 5}`, `a push consumer with ackPolicy: none cannot have a maxAckPending`},

		"a bucket with a blank":      {"clients refuse it", "KeyValue", `bucket: a b`, `spec.bucket: Invalid value: "a b"`},
		"too much history":           {"clients have 64 at most", "KeyValue", `history: 65`, `should be less than or equal to 64`},
		"a mirror and sources":       {"one or the other", "KeyValue", `{mirror: {name: a}, sources: [{name: b}]}`, `set mirror or sources, not both`},
		"a bucket's mirror, unnamed": {"of what?", "KeyValue", `mirror: {}`, `name is required`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := s.try(t, object(t, tc.kind, "x", tc.spec))
			if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
				t.Fatalf("%s: %v; want it refused as invalid", tc.why, err)
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: the message does not say %q:\n%v", tc.why, tc.want, err)
			}
		})
	}
}

func TestSchemaRefusesARename(t *testing.T) {
	s := openShop(t)
	cases := map[string]struct{ why, kind, name, from, to, want string }{
		"a stream":                {"the thing has its name", "Stream", "a", `name: A`, `name: B`, "a stream cannot be renamed"},
		"a stream, later":         {"it has the object's name", "Stream", "b", `{}`, `name: B`, "a stream cannot be renamed"},
		"a stream, to the same":   {"it is no change", "Stream", "c", `{}`, `name: c`, ""},
		"a stream without a spec": {"it has the object's name", "Stream", "c2", ``, `maxMsgs: 5`, ""},
		"a bucket without a spec": {"it has the object's name", "KeyValue", "c3", ``, `history: 5`, ""},
		"a stream with a dot":     {"NATS has names without", "Stream", "d.d", `name: D`, `{}`, "NATS allows no dots"},
		"a bucket":                {"the thing has its name", "KeyValue", "e", `bucket: A`, `bucket: B`, "a bucket cannot be renamed"},
		"a consumer":              {"the thing has its name", "Consumer", "f", `{stream: s, name: A}`, `{stream: s, name: B}`, "a consumer cannot be renamed"},
		"a consumer, moved":       {"it belongs to its stream", "Consumer", "g", `stream: s`, `stream: t`, "cannot move to another stream"},
		"a consumer, referenced":  {"it is no change", "Consumer", "h", `stream: s`, `{stream: s, streamRef: {name: x}}`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			obj := object(t, tc.kind, tc.name, tc.from)
			if tc.from == "" {
				delete(obj.Object, "spec")
			}
			obj.SetNamespace(s.namespace)
			if err := s.client.Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			obj.Object["spec"] = object(t, tc.kind, tc.name, tc.to).Object["spec"]
			err := s.client.Update(t.Context(), obj)
			if tc.want == "" && err != nil {
				t.Errorf("%s: %v", tc.why, err)
			}
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s: %v; want %q", tc.why, err, tc.want)
			}
		})
	}
}

// Whatever NATS takes, and the tests of the drivers use, the schema takes too.
func TestSchemaAccepts(t *testing.T) {
	s := openShop(t)
	all := map[string]client.Object{
		"stream, minimal": stream("minimal", v1alpha1.StreamSpec{}), "stream, maximal": maximalStream(),
		"consumer, minimal": consumer("minimal", "s", v1alpha1.ConsumerSpec{}), "consumer, maximal": maximalConsumer(),
		"consumer, push":  maximalPushConsumer(),
		"bucket, minimal": keyValue("minimal", v1alpha1.KeyValueSpec{}), "bucket, maximal": maximalKeyValue(),
	}
	for name, tc := range streamChanges() {
		all["stream, "+name+", before"], all["stream, "+name+", after"] = stream("x", tc.base), stream("x", tc.next)
	}
	for name, tc := range consumerChanges() {
		all["consumer, "+name+", before"], all["consumer, "+name+", after"] = consumer("x", "s", tc.base), consumer("x", "s", tc.next)
	}
	for name, tc := range keyValueChanges() {
		all["bucket, "+name+", before"], all["bucket, "+name+", after"] = keyValue("x", tc.base), keyValue("x", tc.next)
	}
	maps.Copy(all, examples(t))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := s.try(t, all[name]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// examples are the objects in the folder of that name.
func examples(t *testing.T) map[string]client.Object {
	t.Helper()
	out := map[string]client.Object{}
	err := manifest.Documents(os.DirFS("examples"), func(document []byte) error {
		obj := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(document, &obj.Object); err != nil {
			return err
		}
		out[fmt.Sprintf("example %d: %s %s", len(out)+1, obj.GetKind(), obj.GetName())] = obj
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 5 {
		t.Fatalf("only %d examples", len(out))
	}
	return out
}

func object(t *testing.T, kind, name, spec string) *unstructured.Unstructured {
	t.Helper()
	var fields map[string]any
	if err := yaml.UnmarshalStrict([]byte(spec), &fields); err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": fields}}
	obj.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	obj.SetName(name)
	return obj
}
