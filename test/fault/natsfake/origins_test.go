package natsfake

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
)

// TestOriginsConform: what a server tells of the streams that it is to copy, just after the
// creation and once it has tried.
func TestOriginsConform(t *testing.T) {
	t.Parallel()
	conn := realServer(t)
	fake := New()
	far := &jetstream.ExternalStream{APIPrefix: "$JS.hub.API"}
	cases := []jetstream.StreamConfig{
		{Name: "origin"},
		{Name: "mirror", Mirror: &jetstream.StreamSource{Name: "origin"}},
		{Name: "lost-mirror", Mirror: &jetstream.StreamSource{Name: "nowhere"}},
		{Name: "far-mirror", Mirror: &jetstream.StreamSource{Name: "origin", External: far}},
		{Name: "mixed", Sources: []*jetstream.StreamSource{{Name: "nowhere"}, {Name: "origin"}, {Name: "far", External: far}}},
	}
	for _, cfg := range cases {
		body := []byte(text(cfg))
		m, err := conn.Request(apiPrefix+"STREAM.CREATE."+cfg.Name, body, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		got := fake.Request(apiPrefix+"STREAM.CREATE."+cfg.Name, body)
		if diff := cmp.Diff(readable(t, m.Data), readable(t, got)); diff != "" {
			t.Errorf("create %s (-NATS +fake):\n%s", cfg.Name, diff)
		}
	}
	deadline := time.Now().Add(20 * time.Second)
	for _, cfg := range cases {
		for {
			m, err := conn.Request(apiPrefix+"STREAM.INFO."+cfg.Name, nil, 10*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			want, got := told(t, m.Data), told(t, fake.Request(apiPrefix+"STREAM.INFO."+cfg.Name, nil))
			diff := cmp.Diff(want, got)
			if diff == "" && time.Now().After(deadline.Add(-19*time.Second)) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s (-NATS +fake):\n%s", cfg.Name, diff)
			}
		}
	}
}

// told is what an answer says of the streams that are copied.
func told(t *testing.T, data []byte) string {
	t.Helper()
	var raw struct {
		Mirror  *copies
		Sources []copies
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		t.Fatal(err)
	}
	if raw.Mirror != nil {
		raw.Sources = append(raw.Sources, *raw.Mirror)
	}
	var out []string
	for _, c := range raw.Sources {
		out = append(out, fmt.Sprintf("%s reached %t, %+v", c.Name, c.Active >= 0, c.Error))
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}
