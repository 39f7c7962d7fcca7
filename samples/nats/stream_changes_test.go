package nats_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/natsserver"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
)

// change is one change of one setting, and what NATS makes of it.
type change[S any] struct {
	why string
	// base is created, next is asked for.
	base, next S
	// paths are the differences that are found. Nil means the field that the case is for.
	paths  []string
	effect external.Effect
	// silent: NATS accepts the change and does nothing.
	silent bool
}

// What NATS does with each change of each setting of a stream. A server that does otherwise,
// or has a setting that is not here, fails.
func TestStreamChanges(t *testing.T) {
	_, client := startNATS(t, natsserver.Options{})
	b := streams(client)
	for _, origin := range []string{"origin", "other"} {
		b.create(t, stream(origin, v1alpha1.StreamSpec{Subjects: []string{origin + ".>"}}))
	}
	seen := map[string]bool{}
	tested := map[string]bool{}

	for name, tc := range streamChanges() {
		field, _, _ := strings.Cut(name, ",")
		tested[field] = true
		t.Run(name, func(t *testing.T) {
			id := strings.NewReplacer(" ", "_", ",", "", ".", "_", ">", "").Replace(name)
			obj := stream(id, tc.base)
			b.create(t, obj)
			b.converge(t, obj)
			before := b.observe(t, obj).Have

			obj.Spec = tc.next
			obj.Spec.Recreate = v1alpha1.RecreateAllowed
			wantChanges(t, tc, "spec."+field, b.compare(obj, before))
			err := b.tryUpdate(t, obj)
			after := b.observe(t, obj).Have
			changed(seen, leaves(t, before.Reported), leaves(t, after.Reported))
			wantEffect(t, tc, err, b.changes(t, obj))

			obj.Spec.Recreate = ""
			if refused := b.compare(obj, before).With(external.Unsupported); tc.effect == external.Recreate && len(refused) == 0 {
				t.Errorf("%s: re-creation is not refused by default", tc.why)
			}
			if tc.effect == external.Recreate { // what the new thing would be
				obj.Spec.Name = obj.Name + "_anew"
				b.create(t, obj)
				b.converge(t, obj)
				changed(seen, leaves(t, before.Reported), leaves(t, b.observe(t, obj).Have.Reported))
				b.remove(t, obj)
				obj.Spec.Name = ""
			}
			b.remove(t, obj)
		})
	}

	notSettings := []string{"spec.name", "spec.recreate"}
	for _, f := range specFields(reflect.TypeFor[v1alpha1.StreamSpec]()) {
		if !tested[f] && !slices.Contains(notSettings, "spec."+f) {
			t.Errorf("no change of spec.%s is tested", f)
		}
	}
	wantAllSettings(t, reflect.TypeFor[server.StreamConfig](), seen, map[string]string{
		"name":                "it is the stream's identity",
		"num_replicas":        "it takes a cluster: TestReplicasInACluster",
		"placement.preferred": "the server refuses it in a stream's configuration",
	})
}

func streamChanges() map[string]change[v1alpha1.StreamSpec] {
	type spec = v1alpha1.StreamSpec
	type cases = map[string]change[spec]
	on, off := new(true), new(false)
	hour, minute := lasting(time.Hour), lasting(time.Minute)
	past := at(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	from := func(s v1alpha1.StreamSource) *v1alpha1.StreamSource { return &s }

	return cases{
		"description":                  {why: "free text", base: spec{Description: new("old")}, next: spec{Description: new("new")}},
		"subjects":                     {why: "listens elsewhere", base: spec{Subjects: []string{"ch.a", "ch.b"}}, next: spec{Subjects: []string{"ch.c", "ch.b"}}},
		"subjects, none":               {why: "a stream with sources needs none", base: spec{Subjects: []string{"ch.d"}, Sources: []v1alpha1.StreamSource{{Name: "origin"}}}, next: spec{Subjects: []string{}}},
		"retention":                    {why: "limits and interest are one way of storing", base: spec{Retention: new("limits")}, next: spec{Retention: new("interest")}},
		"retention, workqueue":         {why: "a queue is made as one", base: spec{Retention: new("limits")}, next: spec{Retention: new("workqueue")}, effect: external.Recreate},
		"retention, no workqueue":      {why: "a queue stays one", base: spec{Retention: new("workqueue")}, next: spec{Retention: new("limits")}, effect: external.Recreate},
		"maxConsumers":                 {why: "a limit", base: spec{MaxConsumers: new(3)}, next: spec{MaxConsumers: new(5)}},
		"maxMsgs":                      {why: "a limit", base: spec{MaxMsgs: new(int64(3))}, next: spec{MaxMsgs: new(int64(5))}},
		"maxMsgs, none":                {why: "0 is NATS's -1", base: spec{MaxMsgs: new(int64(3))}, next: spec{MaxMsgs: new(int64(0))}},
		"maxBytes":                     {why: "a limit", base: spec{MaxBytes: new(int64(1 << 20))}, next: spec{MaxBytes: new(int64(2 << 20))}},
		"maxMsgsPerSubject":            {why: "a limit", base: spec{MaxMsgsPerSubject: new(int64(3))}, next: spec{MaxMsgsPerSubject: new(int64(5))}},
		"maxMsgSize":                   {why: "a limit", base: spec{MaxMsgSize: new(int32(1024))}, next: spec{MaxMsgSize: new(int32(2048))}},
		"maxAge":                       {why: "a limit", base: spec{MaxAge: hour}, next: spec{MaxAge: lasting(2 * time.Hour)}},
		"maxAge, none":                 {why: "0s means for ever", base: spec{MaxAge: hour}, next: spec{MaxAge: lasting(0)}},
		"discard":                      {why: "what gives way", base: spec{Discard: new("old")}, next: spec{Discard: new("new")}},
		"discardPerSubject":            {why: "what gives way", base: spec{Discard: new("new"), MaxMsgsPerSubject: new(int64(3)), DiscardPerSubject: off}, next: spec{Discard: new("new"), MaxMsgsPerSubject: new(int64(3)), DiscardPerSubject: on}},
		"storage":                      {why: "messages are not carried over", base: spec{}, next: spec{Storage: new(v1alpha1.Storage("memory"))}, effect: external.Recreate},
		"replicas":                     {why: "this server is alone; a cluster does it in place", base: spec{Replicas: new(1)}, next: spec{Replicas: new(3)}, effect: external.InPlace, silent: true},
		"noAck":                        {why: "an answer or none", base: spec{NoAck: off}, next: spec{NoAck: on}},
		"duplicateWindow":              {why: "a window", base: spec{DuplicateWindow: hour}, next: spec{DuplicateWindow: minute}},
		"placement":                    {why: "moves within a cluster", base: spec{}, next: spec{Placement: &v1alpha1.Placement{Cluster: "east", Tags: []string{"ssd"}}}},
		"placement, none":              {why: "an empty value removes", base: spec{Placement: &v1alpha1.Placement{Tags: []string{"ssd"}}}, next: spec{Placement: &v1alpha1.Placement{}}},
		"mirror":                       {why: "a mirror copies one stream for good", base: spec{Mirror: from(v1alpha1.StreamSource{Name: "origin"})}, next: spec{Mirror: from(v1alpha1.StreamSource{Name: "other", OptStartSeq: new(int64(2))})}, effect: external.Recreate},
		"mirror, of a stream":          {why: "a stream does not become a mirror", base: spec{}, next: spec{Mirror: from(v1alpha1.StreamSource{Name: "origin", OptStartTime: past, SubjectTransforms: []v1alpha1.SubjectTransform{{Source: "origin.a", Dest: "x.a"}}})}, effect: external.Recreate},
		"mirror, none":                 {why: "a mirror is promoted", base: spec{Mirror: from(v1alpha1.StreamSource{Name: "origin"})}, next: spec{Mirror: &v1alpha1.StreamSource{}}},
		"mirror, filtered":             {why: "what is copied is fixed", base: spec{Mirror: from(v1alpha1.StreamSource{Name: "origin"})}, next: spec{Mirror: from(v1alpha1.StreamSource{Name: "origin", FilterSubject: "origin.a"})}, effect: external.Recreate},
		"mirror, external":             {why: "where it is copied from is fixed", base: spec{Mirror: from(v1alpha1.StreamSource{Name: "origin"})}, next: spec{Mirror: from(v1alpha1.StreamSource{Name: "far", ExternalAPIPrefix: "$JS.far.API", ExternalDeliverPrefix: "deliver.far"})}, effect: external.Recreate},
		"mirror, durable":              {why: "through what it is copied is fixed", base: spec{Mirror: from(v1alpha1.StreamSource{Name: "origin"})}, next: spec{Mirror: from(v1alpha1.StreamSource{Name: "origin", Consumer: &v1alpha1.SourceConsumer{Name: "copy", DeliverSubject: "deliver.copy"}})}, effect: external.Recreate},
		"sources":                      {why: "sources come and go", base: spec{Sources: []v1alpha1.StreamSource{{Name: "origin"}}}, next: spec{Sources: []v1alpha1.StreamSource{{Name: "other", OptStartSeq: new(int64(2))}, {Name: "origin", FilterSubject: "origin.a"}}}},
		"sources, transformed":         {why: "sources come and go", base: spec{Sources: []v1alpha1.StreamSource{{Name: "origin"}}}, next: spec{Sources: []v1alpha1.StreamSource{{Name: "origin", OptStartTime: past, SubjectTransforms: []v1alpha1.SubjectTransform{{Source: "origin.*", Dest: "x.{{wildcard(1)}}"}}}}}},
		"sources, external":            {why: "sources come and go", base: spec{Sources: []v1alpha1.StreamSource{{Name: "origin"}}}, next: spec{Sources: []v1alpha1.StreamSource{{Name: "far", ExternalAPIPrefix: "$JS.far.API", ExternalDeliverPrefix: "deliver.far"}}}},
		"sources, durable":             {why: "sources come and go", base: spec{Sources: []v1alpha1.StreamSource{{Name: "origin"}}}, next: spec{Sources: []v1alpha1.StreamSource{{Name: "origin", Consumer: &v1alpha1.SourceConsumer{Name: "copy", DeliverSubject: "deliver.copy"}}}}},
		"sources, none":                {why: "an empty value removes", base: spec{Sources: []v1alpha1.StreamSource{{Name: "origin"}}}, next: spec{Sources: []v1alpha1.StreamSource{}}},
		"sealed":                       {why: "closing works once", base: spec{Sealed: off}, next: spec{Sealed: on}},
		"sealed, open again":           {why: "a sealed stream stays sealed", base: spec{Sealed: on}, next: spec{Sealed: off}, effect: external.Recreate},
		"maxAge, sealed":               {why: "NATS keeps a sealed stream's messages", base: spec{Sealed: on}, next: spec{MaxAge: hour, Discard: new("old"), DenyDelete: off, DenyPurge: off, AllowRollup: on}, paths: []string{"spec.allowRollup", "spec.denyDelete", "spec.denyPurge", "spec.discard", "spec.maxAge"}, effect: external.Ignored},
		"denyDelete":                   {why: "a promise", base: spec{DenyDelete: off}, next: spec{DenyDelete: on}},
		"denyDelete, off":              {why: "a promise is not taken back", base: spec{DenyDelete: on}, next: spec{DenyDelete: off}, effect: external.Recreate},
		"denyPurge":                    {why: "a promise", base: spec{DenyPurge: off}, next: spec{DenyPurge: on}},
		"denyPurge, off":               {why: "a promise is not taken back", base: spec{DenyPurge: on}, next: spec{DenyPurge: off}, effect: external.Recreate},
		"allowRollup":                  {why: "a permission", base: spec{AllowRollup: off}, next: spec{AllowRollup: on}},
		"compression":                  {why: "for what comes next", base: spec{Compression: new("none")}, next: spec{Compression: new("s2")}},
		"firstSequence":                {why: "it counts at creation alone", base: spec{}, next: spec{FirstSequence: new(int64(100))}, effect: external.Recreate, silent: true},
		"subjectTransform":             {why: "for what comes next", base: spec{Subjects: []string{"tr.*"}}, next: spec{SubjectTransform: &v1alpha1.SubjectTransform{Source: "tr.*", Dest: "y.{{wildcard(1)}}"}}},
		"subjectTransform, none":       {why: "an empty value removes", base: spec{Subjects: []string{"tn.*"}, SubjectTransform: &v1alpha1.SubjectTransform{Source: "tn.*", Dest: "y.{{wildcard(1)}}"}}, next: spec{SubjectTransform: &v1alpha1.SubjectTransform{}}},
		"republish":                    {why: "for what comes next", base: spec{Republish: &v1alpha1.Republish{Destination: "rep.>"}}, next: spec{Republish: &v1alpha1.Republish{Source: "republish", Destination: "again.x", HeadersOnly: true}}},
		"republish, none":              {why: "an empty value removes", base: spec{Republish: &v1alpha1.Republish{Destination: "rep.>"}}, next: spec{Republish: &v1alpha1.Republish{}}},
		"allowDirect":                  {why: "a way of reading", base: spec{AllowDirect: off}, next: spec{AllowDirect: on}},
		"mirrorDirect":                 {why: "a way of reading", base: spec{MirrorDirect: off}, next: spec{MirrorDirect: on}},
		"mirrorDirect, of a mirror":    {why: "it is the origin's to say", base: spec{Mirror: from(v1alpha1.StreamSource{Name: "origin"})}, next: spec{MirrorDirect: on}, effect: external.Ignored},
		"consumerLimits":               {why: "for consumers that come next", base: spec{}, next: spec{ConsumerLimits: &v1alpha1.ConsumerLimits{InactiveThreshold: hour, MaxAckPending: new(10)}}},
		"consumerLimits, none":         {why: "an empty value removes", base: spec{ConsumerLimits: &v1alpha1.ConsumerLimits{InactiveThreshold: hour, MaxAckPending: new(10)}}, next: spec{ConsumerLimits: &v1alpha1.ConsumerLimits{}}},
		"allowMsgTtl":                  {why: "messages that have one keep it", base: spec{AllowMsgTTL: off}, next: spec{AllowMsgTTL: on}},
		"allowMsgTtl, off":             {why: "messages that have one keep it", base: spec{AllowMsgTTL: on}, next: spec{AllowMsgTTL: off}, effect: external.Recreate},
		"subjectDeleteMarkerTtl":       {why: "for markers that come next", base: spec{SubjectDeleteMarkerTTL: minute}, next: spec{SubjectDeleteMarkerTTL: hour}},
		"subjectDeleteMarkerTtl, none": {why: "for markers that come next", base: spec{SubjectDeleteMarkerTTL: minute}, next: spec{SubjectDeleteMarkerTTL: lasting(0)}},
		"allowMsgCounter":              {why: "what is stored is another thing", base: spec{AllowMsgCounter: off}, next: spec{AllowMsgCounter: on}, effect: external.Recreate},
		"allowMsgCounter, off":         {why: "what is stored is another thing", base: spec{AllowMsgCounter: on}, next: spec{AllowMsgCounter: off}, effect: external.Recreate},
		"allowAtomicPublish":           {why: "a permission", base: spec{AllowAtomicPublish: off}, next: spec{AllowAtomicPublish: on}},
		"allowAtomicPublish, off":      {why: "a permission", base: spec{AllowAtomicPublish: on}, next: spec{AllowAtomicPublish: off}},
		"allowBatchPublish":            {why: "a permission", base: spec{AllowBatchPublish: off}, next: spec{AllowBatchPublish: on}},
		"allowBatchPublish, off":       {why: "a permission", base: spec{AllowBatchPublish: on}, next: spec{AllowBatchPublish: off}},
		"allowMsgSchedules":            {why: "schedules that are stored go on", base: spec{AllowMsgSchedules: off}, next: spec{AllowMsgSchedules: on}},
		"allowMsgSchedules, off":       {why: "schedules that are stored go on", base: spec{AllowMsgSchedules: on}, next: spec{AllowMsgSchedules: off}, effect: external.Recreate},
		"persistMode":                  {why: "files are laid out for it", base: spec{}, next: spec{PersistMode: new("async")}, effect: external.Recreate},
		"metadata":                     {why: "labels", base: spec{Metadata: map[string]string{"team": "a", "gone": "x"}}, next: spec{Metadata: map[string]string{"team": "b", "more": "y"}}},
		"metadata, none":               {why: "an empty value removes", base: spec{Metadata: map[string]string{"team": "a"}}, next: spec{Metadata: map[string]string{}}},
	}
}

func (b bench[T, O]) remove(t *testing.T, obj T) {
	t.Helper()
	if err := b.delete(t, obj); err != nil {
		t.Fatal(err)
	}
	if seen := b.observe(t, obj); seen.Phase != external.PhaseMissing {
		t.Fatalf("deleted, and yet %s", seen.Phase)
	}
}

// wantChanges checks what Compare says of a change.
func wantChanges[S any](t *testing.T, tc change[S], field string, got external.Changes) {
	t.Helper()
	want := tc.paths
	if want == nil {
		want = []string{field}
	}
	var paths []string
	for _, c := range got {
		paths = append(paths, c.Path)
		if c.Path == field && c.Effect != tc.effect {
			t.Errorf("%s: %s has the effect %s, want %s", tc.why, c.Path, c.Effect, tc.effect)
		}
	}
	wantDiff(t, "differences", want, paths)
}

// wantEffect checks that NATS did with an update what the effect says; left is what still
// differs afterwards.
func wantEffect[S any](t *testing.T, tc change[S], err error, left external.Changes) {
	t.Helper()
	switch {
	case tc.silent && tc.effect == external.InPlace: // this server cannot
		if err == nil {
			t.Errorf("%s: accepted", tc.why)
		}
	case tc.silent:
		if err != nil {
			t.Errorf("%s: NATS refuses now: %v", tc.why, err)
		}
	case tc.effect == external.Recreate:
		if err == nil {
			t.Errorf("%s: NATS changed it in place", tc.why)
		}
	case tc.effect == external.Ignored:
		if err == nil && len(left) == 0 {
			t.Errorf("%s: NATS did change it", tc.why)
		}
	case err != nil:
		t.Errorf("%s: %v", tc.why, err)
	default:
		wantNothing(t, tc.why+": still", left)
	}
}

// wantAllSettings checks that every setting that the server has was seen to change, or is
// left out for a reason.
func wantAllSettings(t *testing.T, config reflect.Type, seen map[string]bool, leftOut map[string]string) {
	t.Helper()
	for _, s := range settingsOf(config) {
		reason, excused := leftOut[s]
		switch {
		case excused && seen[s] && s != "name":
			t.Errorf("the server's setting %s is said to be left out (%s) and yet changes", s, reason)
		case !excused && !seen[s]:
			t.Errorf("the server has a setting %s that no field of the spec changes; add it, or say here why not", s)
		}
	}
}
