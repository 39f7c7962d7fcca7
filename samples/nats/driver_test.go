package nats_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/natsserver"
	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/samples/nats"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
)

// maximalStream sets every field that goes together.
func maximalStream() *v1alpha1.Stream {
	return stream("maximal", v1alpha1.StreamSpec{
		Name: "MAXIMAL", Description: new("all at once"), Subjects: []string{"max.b", "max.a.*"},
		Retention: new("interest"), MaxConsumers: new(7), MaxMsgs: new(int64(1000)), MaxBytes: new(int64(1 << 20)),
		MaxMsgsPerSubject: new(int64(10)), MaxMsgSize: new(int32(4096)), MaxAge: lasting(time.Hour),
		Discard: new("new"), DiscardPerSubject: new(true), Storage: new(v1alpha1.Storage("file")), Replicas: new(1),
		NoAck: new(false), DuplicateWindow: lasting(time.Minute), Placement: &v1alpha1.Placement{Tags: []string{"ssd"}},
		Sources:    []v1alpha1.StreamSource{{Name: "origin", FilterSubject: "origin.a", OptStartSeq: new(int64(1))}},
		DenyDelete: new(true), DenyPurge: new(false), AllowRollup: new(true), Compression: new("s2"),
		FirstSequence:    new(int64(100)),
		SubjectTransform: &v1alpha1.SubjectTransform{Source: "max.b", Dest: "max.c"},
		Republish:        &v1alpha1.Republish{Source: "max.b", Destination: "copy.b", HeadersOnly: true},
		AllowDirect:      new(true), MirrorDirect: new(false),
		ConsumerLimits: &v1alpha1.ConsumerLimits{InactiveThreshold: lasting(time.Hour), MaxAckPending: new(100)},
		AllowMsgTTL:    new(true), SubjectDeleteMarkerTTL: lasting(time.Minute), AllowMsgCounter: new(false),
		AllowAtomicPublish: new(true), AllowBatchPublish: new(true), AllowMsgSchedules: new(false),
		PersistMode: new("default"), Metadata: map[string]string{"team": "shop"},
	})
}

func maximalConsumer() *v1alpha1.Consumer {
	return consumer("maximal", "origin", v1alpha1.ConsumerSpec{
		Name: "MAXIMAL", Description: new("all at once"), DeliverPolicy: new("byStartSequence"), OptStartSeq: new(int64(3)),
		AckPolicy: new("explicit"), MaxDeliver: new(5),
		Backoff: []v1alpha1.Duration{*lasting(time.Second), *lasting(time.Minute)}, FilterSubjects: []string{"origin.b", "origin.a"},
		ReplayPolicy: new("original"), SampleFreq: new("30%"), MaxWaiting: new(9), MaxAckPending: new(11), HeadersOnly: new(true),
		MaxRequestBatch: new(12), MaxRequestExpires: lasting(time.Minute), MaxRequestMaxBytes: new(1024),
		InactiveThreshold: lasting(time.Hour), Replicas: new(1), MemStorage: new(true),
		PauseUntil:     at(time.Now().Add(time.Hour).Truncate(time.Second)),
		PriorityPolicy: new("pinnedClient"), PriorityGroups: []string{"a"}, PinnedTTL: lasting(time.Minute),
		Metadata: map[string]string{"team": "shop"},
	})
}

func maximalPushConsumer() *v1alpha1.Consumer {
	return consumer("push", "origin", v1alpha1.ConsumerSpec{
		DeliverSubject: new("deliver.max"), DeliverGroup: new("workers"), FlowControl: new(true),
		HeartbeatInterval: lasting(time.Second), RateLimitBps: new(int64(100000)), AckWait: lasting(time.Minute),
		FilterSubject: new("origin.a"), DeliverPolicy: new("lastPerSubject"),
	})
}

func maximalKeyValue() *v1alpha1.KeyValue {
	return keyValue("maximal", v1alpha1.KeyValueSpec{
		Bucket: "MAXIMAL", Description: new("all at once"), MaxValueSize: new(int32(4096)), History: new(int64(5)),
		TTL: lasting(time.Minute), LimitMarkerTTL: lasting(time.Minute), MaxBytes: new(int64(1 << 20)),
		Storage: new(v1alpha1.Storage("memory")), Replicas: new(1), Placement: &v1alpha1.Placement{Tags: []string{"ssd"}},
		Republish: &v1alpha1.Republish{Destination: "kv.copy.>"},
		Sources:   []v1alpha1.StreamSource{{Name: "first"}}, Compression: new(false), Metadata: map[string]string{"team": "shop"},
	})
}

func TestLife(t *testing.T) {
	s, c := startNATS(t, natsserver.Options{})
	streams(c).create(t, stream("origin", v1alpha1.StreamSpec{Subjects: []string{"origin.>"}}))
	keyValues(c).create(t, keyValue("first", v1alpha1.KeyValueSpec{}))

	t.Run("stream, minimal", func(t *testing.T) { life(t, s, streams(c), stream("minimal", v1alpha1.StreamSpec{})) })
	t.Run("stream, maximal", func(t *testing.T) { life(t, s, streams(c), maximalStream()) })
	t.Run("consumer, minimal", func(t *testing.T) {
		life(t, s, consumers(c), consumer("minimal", "origin", v1alpha1.ConsumerSpec{}))
	})
	t.Run("consumer, maximal", func(t *testing.T) { life(t, s, consumers(c), maximalConsumer()) })
	t.Run("consumer, push", func(t *testing.T) { life(t, s, consumers(c), maximalPushConsumer()) })
	t.Run("bucket, minimal", func(t *testing.T) { life(t, s, keyValues(c), keyValue("minimal", v1alpha1.KeyValueSpec{})) })
	t.Run("bucket, maximal", func(t *testing.T) { life(t, s, keyValues(c), maximalKeyValue()) })
}

// life checks what TestConformance does not: how many requests a creation takes, and that an update without a difference
// changes nothing.
func life[T client.Object, O any](t *testing.T, s *natsserver.Server, b bench[T, O], obj T) {
	t.Helper()
	before := len(s.Calls())
	b.create(t, obj)
	seen := b.observe(t, obj)
	if n := len(s.Calls()) - before; n != 2 {
		t.Errorf("creating and looking took %d requests, want 2: %v", n, s.Calls()[before:])
	}
	eventually(t.Context(), t, "it can be used; what copies others takes a moment", func() bool {
		seen = b.observe(t, obj)
		return seen.Phase != external.PhaseCreating
	})
	if seen.Phase != external.PhaseAvailable {
		t.Fatalf("after the creation: %s, %s", seen.Phase, seen.Message)
	}
	wantDiff(t, "mark", testMark, seen.Mark)
	wantNothing(t, "after the creation", b.compare(obj, seen.Have))

	err := b.createAs(t, obj, external.Mark{external.MarkUID: "0815"})
	if err == nil || b.driver.Classify(err) != external.ClassConflict {
		t.Errorf("creating again under another mark: %v, want a conflict", err)
	}
	if err := b.tryUpdate(t, obj); err != nil {
		t.Errorf("updating without a difference: %v", err)
	}
	wantDiff(t, "configuration after an update without a difference",
		leaves(t, b.config(seen.Have)), leaves(t, b.config(b.observe(t, obj).Have)))

	b.remove(t, obj)
}

func TestDrift(t *testing.T) {
	s, c := startNATS(t, natsserver.Options{})
	js := foreign(t, s)

	t.Run("a stream", func(t *testing.T) {
		b, obj := streams(c), stream("orders", v1alpha1.StreamSpec{MaxMsgs: new(int64(100)), Subjects: []string{"orders.>"}})
		b.create(t, obj)
		edit(t, js, "orders", func(cfg *jetstream.StreamConfig) {
			cfg.MaxMsgs, cfg.Subjects, cfg.Description = 5, []string{"orders.>", "more"}, "theirs"
		})
		wantDiff(t, "differences", `spec.maxMsgs 5 → 100, spec.subjects ["more","orders.\u003e"] → ["orders.\u003e"]`, b.changes(t, obj).String())
		b.converge(t, obj)
		if got := b.observe(t, obj).Have.Config.Description; got != "theirs" {
			t.Errorf("what the spec leaves out was changed: description %q", got)
		}
	})
	t.Run("a stream's labels", func(t *testing.T) {
		b, obj := streams(c), stream("labelled", v1alpha1.StreamSpec{Metadata: map[string]string{"team": "a"}})
		b.create(t, obj)
		edit(t, js, "labelled", func(cfg *jetstream.StreamConfig) { cfg.Metadata["team"], cfg.Metadata["theirs"] = "b", "x" })
		b.converge(t, obj)
		wantDiff(t, "mark", testMark, b.observe(t, obj).Mark)
	})
	t.Run("a bucket that lost what makes it one", func(t *testing.T) {
		b, obj := keyValues(c), keyValue("settings", v1alpha1.KeyValueSpec{})
		b.create(t, obj)
		edit(t, js, "KV_settings", func(cfg *jetstream.StreamConfig) { cfg.AllowRollup, cfg.AllowDirect, cfg.Discard = false, false, 0 })
		b.converge(t, obj)
		bucket, err := js.KeyValue(t.Context(), "settings")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := bucket.PutString(t.Context(), "a", "1"); err != nil {
			t.Error(err)
		}
		if err := bucket.Purge(t.Context(), "a"); err != nil {
			t.Error(err)
		}
	})
	t.Run("a consumer", func(t *testing.T) {
		b, obj := consumers(c), consumer("billing", "orders", v1alpha1.ConsumerSpec{AckWait: lasting(time.Minute)})
		b.create(t, obj)
		if _, err := js.UpdateConsumer(t.Context(), "orders", jetstream.ConsumerConfig{Durable: "billing", AckWait: time.Hour}); err != nil {
			t.Fatal(err)
		}
		wantDiff(t, "differences", `spec.ackWait "1h0m0s" → "1m0s"`, b.changes(t, obj).String())
		b.converge(t, obj)
	})
	t.Run("a consumer that went with its stream", func(t *testing.T) {
		b, obj := consumers(c), consumer("billing", "orders", v1alpha1.ConsumerSpec{})
		if err := js.DeleteStream(t.Context(), "orders"); err != nil {
			t.Fatal(err)
		}
		if seen := b.observe(t, obj); seen.Phase != external.PhaseMissing {
			t.Errorf("phase %s", seen.Phase)
		}
		b.remove(t, obj)
	})
}

// A bucket must be one for NATS's own clients, down to each setting.
func TestABucketIsWhatClientsMake(t *testing.T) {
	s, c := startNATS(t, natsserver.Options{})
	js := foreign(t, s)
	for _, name := range []string{"first", "KV_origin"} {
		keyValues(c).create(t, keyValue(strings.TrimPrefix(name, "KV_"), v1alpha1.KeyValueSpec{}))
	}
	cases := map[string]struct {
		why    string
		ours   v1alpha1.KeyValueSpec
		theirs jetstream.KeyValueConfig
	}{
		"minimal": {why: "the defaults agree"},
		"short":   {why: "the window for duplicates fits in", ours: v1alpha1.KeyValueSpec{TTL: lasting(time.Minute)}, theirs: jetstream.KeyValueConfig{TTL: time.Minute}},
		"long":    {why: "the window for duplicates is bounded", ours: v1alpha1.KeyValueSpec{TTL: lasting(time.Hour)}, theirs: jetstream.KeyValueConfig{TTL: time.Hour}},
		"markers": {why: "markers need TTLs per key", ours: v1alpha1.KeyValueSpec{LimitMarkerTTL: lasting(time.Hour)}, theirs: jetstream.KeyValueConfig{LimitMarkerTTL: time.Hour}},
		"mirror":  {why: "names are completed", ours: v1alpha1.KeyValueSpec{Mirror: &v1alpha1.StreamSource{Name: "first"}}, theirs: jetstream.KeyValueConfig{Mirror: &jetstream.StreamSource{Name: "first"}}},
		"sources": {why: "keys are renamed", ours: v1alpha1.KeyValueSpec{Sources: []v1alpha1.StreamSource{{Name: "first"}, {Name: "KV_origin"}}}, theirs: jetstream.KeyValueConfig{Sources: []*jetstream.StreamSource{{Name: "first"}, {Name: "KV_origin"}}}},
		"full": {
			why:    "everything at once",
			ours:   v1alpha1.KeyValueSpec{Description: new("d"), MaxValueSize: new(int32(10)), History: new(int64(3)), MaxBytes: new(int64(1024)), Storage: new(v1alpha1.Storage("memory")), Compression: new(true), Republish: &v1alpha1.Republish{Source: ">", Destination: "x.>"}},
			theirs: jetstream.KeyValueConfig{Description: "d", MaxValueSize: 10, History: 3, MaxBytes: 1024, Storage: jetstream.MemoryStorage, Compression: true, RePublish: &jetstream.RePublish{Source: ">", Destination: "x.>"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b, obj := keyValues(c), keyValue(name, tc.ours)
			b.create(t, obj)
			ours := leaves(t, b.observe(t, obj).Have.Reported)
			b.remove(t, obj)

			tc.theirs.Bucket = name
			if _, err := js.CreateKeyValue(t.Context(), tc.theirs); err != nil {
				t.Fatal(err)
			}
			have := b.observe(t, obj).Have
			theirs := leaves(t, have.Reported)
			delete(ours, "metadata")
			delete(theirs, "metadata")
			wantDiff(t, tc.why+": configuration", theirs, ours)
			wantNothing(t, tc.why, b.compare(obj, have))
		})
	}
}

func TestNames(t *testing.T) {
	ref := &v1alpha1.StreamRef{Name: "orders"}
	bare := func(spec v1alpha1.ConsumerSpec) *v1alpha1.Consumer {
		c := consumer("billing", "", v1alpha1.ConsumerSpec{})
		c.Spec = spec
		return c
	}
	cases := map[string]struct {
		why  string
		got  func() (string, error)
		want string
	}{
		"stream": {"the object's name", func() (string, error) { return nats.Streams{}.ExternalName(stream("a", v1alpha1.StreamSpec{})) }, "a"},
		"stream, named": {"the spec's name", func() (string, error) {
			return nats.Streams{}.ExternalName(stream("a", v1alpha1.StreamSpec{Name: "B"}))
		}, "B"},
		"bucket":   {"the stream behind it", func() (string, error) { return nats.KeyValues{}.ExternalName(keyValue("a", v1alpha1.KeyValueSpec{})) }, "KV_a"},
		"consumer": {"within its stream", func() (string, error) { return nats.Consumers{}.ExternalName(bare(v1alpha1.ConsumerSpec{Stream: "S"})) }, "S/billing"},
		"consumer, by object": {"the object is named as its stream", func() (string, error) {
			return nats.Consumers{}.ExternalName(bare(v1alpha1.ConsumerSpec{StreamRef: ref}))
		}, "orders/billing"},
		"consumer, by both": {"stream is the name in NATS", func() (string, error) {
			return nats.Consumers{}.ExternalName(bare(v1alpha1.ConsumerSpec{Stream: "S", StreamRef: ref, Name: "n"}))
		}, "S/n"},
		"consumer, of nothing": {"refused by the schema too", func() (string, error) { return nats.Consumers{}.ExternalName(bare(v1alpha1.ConsumerSpec{})) }, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := tc.got()
			if got != tc.want || (err != nil) != (tc.want == "") {
				t.Errorf("%s: %q, %v; want %q", tc.why, got, err, tc.want)
			}
		})
	}
}

func TestDependencies(t *testing.T) {
	ref := &v1alpha1.StreamRef{Name: "orders", Namespace: "shop"}
	got := nats.Consumers{}.DependsOn(consumer("billing", "", v1alpha1.ConsumerSpec{StreamRef: ref}))
	if len(got) != 1 || got[0].Role != "stream" || got[0].Name != "orders" || got[0].Namespace != "shop" {
		t.Errorf("dependencies %+v", got)
	}
	if got := (nats.Consumers{}).DependsOn(consumer("billing", "S", v1alpha1.ConsumerSpec{})); len(got) != 0 {
		t.Errorf("a consumer of a stream without an object depends on %+v", got)
	}
	if got := (nats.Consumers{}).DependsOn(&v1alpha1.Consumer{}); len(got) != 1 {
		t.Errorf("the kind depends on %+v, want Stream", got)
	}
}

func TestRefusals(t *testing.T) {
	_, c := startNATS(t, natsserver.Options{MaxStore: 1 << 20})
	b := streams(c)
	b.create(t, stream("orders", v1alpha1.StreamSpec{Subjects: []string{"orders.>"}}))
	cases := map[string]struct {
		why   string
		do    func() error
		class external.Class
		text  string
	}{
		"overlap": {
			why: "the other stream may go",
			do: func() error {
				return b.tryCreate(t, stream("copy", v1alpha1.StreamSpec{Subjects: []string{"orders.new"}}))
			},
			class: external.ClassConflict,
			text:  `NATS refuses: subjects overlap with an existing stream (error 10065); choose other subjects, or remove these from the stream that has them`,
		},
		"cycle": {
			why: "only another spec helps",
			do: func() error {
				return b.tryCreate(t, stream("cycle", v1alpha1.StreamSpec{Subjects: []string{"c"}, Republish: &v1alpha1.Republish{Destination: "c"}}))
			},
			class: external.ClassInvalid,
			text:  `NATS refuses: stream configuration for republish destination forms a cycle (error 10052)`,
		},
		"replicas": {
			why:   "only another spec helps, or another NATS",
			do:    func() error { return b.tryCreate(t, stream("three", v1alpha1.StreamSpec{Replicas: new(3)})) },
			class: external.ClassInvalid,
			text:  `NATS refuses: replicas > 1 not supported in non-clustered mode (error 10074); set spec.replicas to 1, or run NATS as a cluster`,
		},
		"room": {
			why:   "room may be made",
			do:    func() error { return b.tryCreate(t, stream("big", v1alpha1.StreamSpec{MaxBytes: new(int64(2 << 20))})) },
			class: external.ClassTransient,
			text:  `NATS refuses: insufficient storage resources available (error 10047); free some storage, or raise the limit of the server`,
		},
		"no stream": {
			why: "the stream may come",
			do: func() error {
				return consumers(c).tryCreate(t, consumer("billing", "nowhere", v1alpha1.ConsumerSpec{}))
			},
			class: external.ClassConflict,
			text:  `NATS refuses: stream not found (error 10059); create the stream; if it belongs to a Stream object, name that in spec.streamRef`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.do()
			if err == nil {
				t.Fatalf("%s: accepted", tc.why)
			}
			wantDiff(t, tc.why+": message", tc.text, err.Error())
			if got := b.driver.Classify(err); got != tc.class {
				t.Errorf("%s: class %s, want %s", tc.why, got, tc.class)
			}
		})
	}
}

func TestNATSThatIsAwayAndComesBack(t *testing.T) {
	dir := t.TempDir()
	s, c := startNATS(t, natsserver.Options{Dir: dir})
	b, obj := streams(c), stream("orders", v1alpha1.StreamSpec{})
	b.create(t, obj)
	port, where := s.Port(), strings.TrimPrefix(s.URL(), "nats://")
	s.Stop()

	want := "NATS at nats://" + where + " does not answer: connection refused; start it, or correct the operator's --nats-url"
	eventually(t.Context(), t, "the client notices", func() bool {
		_, err := b.tryObserve(t, obj)
		return err != nil && err.Error() == want
	})
	err := b.tryCreate(t, stream("late", v1alpha1.StreamSpec{}))
	if e, ok := errors.AsType[*external.Error](err); !ok || e.Class != external.ClassTransient {
		t.Errorf("a request that was never sent: %v; want it transient", err)
	}

	again, _ := startNATS(t, natsserver.Options{Dir: dir, Port: port})
	eventually(t.Context(), t, "the client is back", func() bool {
		seen, err := b.tryObserve(t, obj)
		return err == nil && seen.Phase == external.PhaseAvailable
	})
	for _, call := range again.Mutations() {
		t.Errorf("a request that was given up took effect later: %s", call)
	}
}

func TestAnAnswerThatIsLostIsAmbiguous(t *testing.T) {
	held := make(chan struct{})
	_, c := startNATS(t, natsserver.Options{Answered: func(call natsserver.Call) {
		if call.Op == "STREAM.CREATE" {
			<-held
		}
	}})
	defer close(held)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := nats.Streams{}.Create(ctx, external.CreateRequest[*v1alpha1.Stream, *nats.Client]{
		Client: c, Object: stream("orders", v1alpha1.StreamSpec{}), ID: "orders", Mark: testMark,
	})
	if e, ok := errors.AsType[*external.Error](err); !ok || e.Class != external.ClassAmbiguous {
		t.Errorf("error %v, want it ambiguous", err)
	}
}

func TestARequestEndsWithItsConnection(t *testing.T) {
	answered, held := make(chan struct{}), make(chan struct{})
	s, c := startNATS(t, natsserver.Options{Answered: func(natsserver.Call) {
		close(answered)
		<-held
	}})
	failed := make(chan error, 1)
	go func() {
		_, err := nats.Streams{}.Delete(t.Context(), external.DeleteRequest[*v1alpha1.Stream, *nats.Client]{Client: c, ID: "orders"})
		failed <- err
	}()
	<-answered
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.Stop()
	}()
	err := <-failed
	if e, ok := errors.AsType[*external.Error](err); !ok || e.Class != external.ClassAmbiguous || !strings.Contains(err.Error(), "the connection was lost") {
		t.Errorf("error %v, want it ambiguous", err)
	}
	close(held)
	<-stopped
}

func TestMissingPermissionsAreNamed(t *testing.T) {
	ns, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true, JetStream: true, StoreDir: t.TempDir(),
		Users: []*server.User{{Username: "operator", Password: "hunter2", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: []string{"$JS.API.STREAM.INFO.>"}},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ns.Start()
	t.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
	if !ns.ReadyForConnections(poll.Patience) {
		t.Fatal("NATS does not start")
	}
	addr := ns.Addr().String()
	b, obj := streams(connect(t, "nats://operator:hunter2@"+addr)), stream("orders", v1alpha1.StreamSpec{})
	eventually(t.Context(), t, "the operator may read", func() bool {
		_, err := b.tryObserve(t, obj)
		return err == nil
	})

	err = b.tryCreate(t, obj)
	if e, ok := errors.AsType[*external.Error](err); !ok || e.Class != external.ClassDenied {
		t.Errorf("error %v, want it denied", err)
	}
	want := `NATS at nats://` + addr + ` does not let the operator publish to $JS.API.STREAM.CREATE.orders: allow this for the operator's user`
	wantDiff(t, "message", want, err.Error())
}

func TestNoPasswordInMessages(t *testing.T) {
	c := connect(t, "nats://operator:hunter2@127.0.0.1:1, nats://operator:hunter2@127.0.0.1:2")
	_, err := streams(c).tryObserve(t, stream("a", v1alpha1.StreamSpec{}))
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "nats://127.0.0.1:1,nats://127.0.0.1:2") {
		t.Errorf("error %v", err)
	}
}

// foreign is a client that is not the operator.
func foreign(t *testing.T, s *natsserver.Server) jetstream.JetStream {
	t.Helper()
	conn, err := s.Connect("somebody else")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// edit changes a stream behind the operator's back.
func edit(t *testing.T, js jetstream.JetStream, name string, change func(*jetstream.StreamConfig)) {
	t.Helper()
	s, err := js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.CachedInfo().Config
	change(&cfg)
	if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
}
