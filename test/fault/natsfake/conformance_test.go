package natsfake

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/trimtab-dev/trimtab/internal/natsserver"
)

// TestConformance asks a real NATS server and the fake the same at random, and wants the same
// answers: of requests such as the drivers send, and of wrong ones. TRIMTAB_DEEP=1 asks
// twenty times as much.
func TestConformance(t *testing.T) {
	t.Parallel()
	conn := realServer(t)
	sequences := 60
	if os.Getenv("TRIMTAB_DEEP") != "" {
		sequences = 1200
	}
	refused, accepted := 0, 0
	for seed := range sequences {
		c := &comparison{t: t, seed: seed, real: conn, fake: New(), rng: rand.New(rand.NewPCG(uint64(seed), 7))}
		for range 40 {
			if c.step() {
				accepted++
			} else {
				refused++
			}
			if t.Failed() {
				t.Fatalf("seed %d, requests:\n%s", seed, strings.Join(c.asked, "\n"))
			}
		}
		c.clear()
	}
	t.Logf("%d requests accepted and %d refused alike", accepted, refused)
	if accepted < sequences*10 || refused < sequences*5 {
		t.Errorf("%d requests were accepted and %d refused; the mixture proves little", accepted, refused)
	}
}

// comparison is one sequence of requests to both.
type comparison struct {
	t     *testing.T
	seed  int
	real  *nats.Conn
	fake  *Server
	rng   *rand.Rand
	asked []string
}

// step makes one request and compares the answers. It tells whether it was accepted.
func (c *comparison) step() bool {
	stream, consumer := pick(c.rng, "a", "b", "c"), pick(c.rng, "x", "y")
	switch c.rng.IntN(12) {
	case 0, 1:
		return c.ask("STREAM.CREATE."+stream, c.streamConfig(jetstream.StreamConfig{Name: stream}))
	case 2:
		if c.rng.IntN(8) == 0 {
			return c.ask("STREAM.CREATE."+stream, jetstream.StreamConfig{Name: "another"})
		}
		return c.ask("STREAM.CREATE."+stream, c.present(stream))
	case 3, 4:
		return c.ask("STREAM.UPDATE."+stream, c.streamConfig(c.present(stream)))
	case 5:
		return c.ask("STREAM.INFO."+stream, nil)
	case 6:
		if c.rng.IntN(3) > 0 {
			return c.ask("CONSUMER.DELETE."+stream+"."+consumer, nil)
		}
		return c.ask("STREAM.DELETE."+stream, nil)
	case 7, 8:
		return c.send(stream, consumer, "create", c.consumerConfig(jetstream.ConsumerConfig{Durable: consumer}))
	case 9:
		return c.send(stream, consumer, "update", c.consumerConfig(c.presentConsumer(stream, consumer)))
	case 10:
		return c.ask("CONSUMER.INFO."+stream+"."+consumer, nil)
	}
	until := map[string]any{}
	if c.rng.IntN(2) == 0 {
		until["pause_until"] = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return c.ask("CONSUMER.PAUSE."+stream+"."+consumer, until)
}

func (c *comparison) send(stream, consumer, action string, cfg jetstream.ConsumerConfig) bool {
	subject := "CONSUMER.CREATE." + stream + "." + consumer
	if cfg.FilterSubject != "" {
		subject += "." + cfg.FilterSubject
	}
	return c.ask(subject, map[string]any{"stream_name": stream, "config": cfg, "action": action})
}

// present is a stream's configuration as its reader has it, or a first one.
func (c *comparison) present(name string) jetstream.StreamConfig {
	if st, ok := c.fake.streams[name]; ok {
		cfg := st.config
		cfg.Metadata = shown(cfg.Metadata)
		return cfg
	}
	return jetstream.StreamConfig{Name: name}
}

func (c *comparison) presentConsumer(stream, name string) jetstream.ConsumerConfig {
	if st, ok := c.fake.streams[stream]; ok {
		if o, ok := st.consumers[name]; ok {
			cfg := o.config
			cfg.Metadata = shown(cfg.Metadata)
			return cfg
		}
	}
	return jetstream.ConsumerConfig{Durable: name, Name: name}
}

// streamConfig changes some settings at random.
func (c *comparison) streamConfig(cfg jetstream.StreamConfig) jetstream.StreamConfig {
	for range c.rng.IntN(4) {
		switch c.rng.IntN(16) {
		case 0, 1:
			cfg.Subjects = []string{pick(c.rng, "a.>", "a.*", "a.b", "b", "b.>", "*.b", "c.*.d", "bad..subject", ">.bad")}
		case 2:
			cfg.Subjects = []string{pick(c.rng, "a.>", "c.1"), pick(c.rng, "a.x", "c.1", "c.2")}
		case 3:
			cfg.MaxMsgs = pick(c.rng, int64(-7), 0, 5, 1000)
		case 4:
			cfg.MaxAge = pick(c.rng, 0, time.Millisecond, time.Minute, time.Hour)
		case 5:
			cfg.Duplicates = pick(c.rng, 0, time.Minute, time.Hour)
		case 6:
			cfg.Storage = pick(c.rng, jetstream.FileStorage, jetstream.MemoryStorage)
		case 7:
			cfg.Retention = pick(c.rng, jetstream.LimitsPolicy, jetstream.InterestPolicy)
		case 8:
			cfg.Discard, cfg.MaxMsgsPerSubject = pick(c.rng, jetstream.DiscardOld, jetstream.DiscardNew), pick(c.rng, int64(0), 1, 5)
		case 9:
			cfg.Replicas = pick(c.rng, 0, 1, 1, 3)
		case 10:
			cfg.Description = pick(c.rng, "", "one", "two")
		case 11:
			cfg.Metadata = map[string]string{"team": pick(c.rng, "a", "b"), "trimtab-uid": pick(c.rng, "1", "2")}
		case 12:
			cfg.DenyDelete, cfg.AllowRollup = pick(c.rng, true, false), pick(c.rng, true, false)
		case 13:
			cfg.AllowDirect = pick(c.rng, true, false)
		case 14:
			cfg.MaxConsumers = pick(c.rng, 0, 1, 2)
		case 15:
			cfg.SubjectDeleteMarkerTTL = pick(c.rng, 0, time.Minute)
		}
	}
	return cfg
}

// consumerConfig changes some settings at random.
func (c *comparison) consumerConfig(cfg jetstream.ConsumerConfig) jetstream.ConsumerConfig {
	for range c.rng.IntN(4) {
		switch c.rng.IntN(9) {
		case 0:
			cfg.MaxDeliver = pick(c.rng, -5, 0, 1, 7)
		case 1:
			cfg.AckPolicy = pick(c.rng, jetstream.AckExplicitPolicy, jetstream.AckAllPolicy, jetstream.AckNonePolicy)
		case 2:
			cfg.AckWait = pick(c.rng, 0, time.Second)
		case 3:
			cfg.DeliverPolicy = pick(c.rng, jetstream.DeliverAllPolicy, jetstream.DeliverNewPolicy)
		case 4:
			cfg.Description = pick(c.rng, "", "one", "two")
		case 5:
			cfg.MaxAckPending = pick(c.rng, 0, 10)
		case 6:
			cfg.BackOff = pick(c.rng, nil, []time.Duration{time.Second}, []time.Duration{time.Second, time.Minute})
		case 7:
			cfg.Metadata = map[string]string{"team": pick(c.rng, "a", "b")}
		case 8:
			cfg.MaxWaiting = pick(c.rng, 0, 512, 100)
		}
	}
	return cfg
}

// ask sends a request to both.
func (c *comparison) ask(subject string, in any) bool {
	c.t.Helper()
	var body []byte
	if in != nil {
		body = []byte(text(in))
	}
	c.asked = append(c.asked, subject+" "+string(body))
	want := c.askNATS(subject, body)
	for want["error"] == unswept {
		want = c.askNATS(subject, body)
	}
	got := readable(c.t, c.fake.Request(apiPrefix+subject, body))
	if diff := cmp.Diff(want, got); diff != "" {
		c.t.Errorf("seed %d: %s %s (-NATS +fake):\n%s", c.seed, subject, body, diff)
	}
	_, refused := want["error"]
	return !refused
}

// unswept is what NATS answers while it still removes the files of a stream of that name.
const unswept = "500 10049 error creating store for stream"

func (c *comparison) askNATS(subject string, body []byte) map[string]string {
	c.t.Helper()
	m, err := c.real.Request(apiPrefix+subject, body, 10*time.Second)
	if err != nil {
		c.t.Fatalf("%s: %v", subject, err)
	}
	return readable(c.t, m.Data)
}

// readable is an answer as the operator decodes it, without times and measurements.
func readable(t *testing.T, data []byte) map[string]string {
	t.Helper()
	var raw struct {
		Error   *refusal        `json:"error"`
		Stream  string          `json:"stream_name"`
		Name    string          `json:"name"`
		Config  json.RawMessage `json:"config"`
		Created time.Time       `json:"created"`
		Success bool            `json:"success"`
		Paused  bool            `json:"paused"`
		Until   time.Time       `json:"pause_until"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	if raw.Error != nil {
		return map[string]string{"error": fmt.Sprintf("%d %d %s", raw.Error.Code, raw.Error.ErrCode, raw.Error.Description)}
	}
	out := map[string]string{
		"created": fmt.Sprint(!raw.Created.IsZero()), "success": fmt.Sprint(raw.Success),
		"paused": fmt.Sprint(raw.Paused), "until": raw.Until.String(),
	}
	if raw.Config == nil {
		return out
	}
	var err error
	if raw.Stream != "" {
		var cfg jetstream.ConsumerConfig
		err = json.Unmarshal(raw.Config, &cfg)
		out["config"], out["consumer"] = text(cfg), raw.Stream+"/"+raw.Name
	} else {
		var cfg jetstream.StreamConfig
		err = json.Unmarshal(raw.Config, &cfg)
		out["config"] = text(cfg)
	}
	if err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return out
}

// clear empties the real server for the next sequence.
func (c *comparison) clear() {
	for _, name := range []string{"a", "b", "c"} {
		if _, ok := c.fake.streams[name]; ok {
			c.ask("STREAM.DELETE."+name, nil)
		}
	}
}

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

// realServer starts a NATS server and connects to it.
func realServer(t *testing.T) *nats.Conn {
	t.Helper()
	server, err := natsserver.Start(natsserver.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	conn, err := server.Connect("conformance")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}
