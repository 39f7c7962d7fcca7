package nats

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
)

// An update must not reset what a newer server has and this operator does not know.
func TestPatchedKeepsWhatItDoesNotKnow(t *testing.T) {
	cases := map[string]struct {
		why      string
		reported string
		change   func(*jetstream.StreamConfig)
		want     string
	}{
		"nothing": {
			why:      "no change is no change",
			reported: `{"name":"a","max_msgs":5,"novelty":{"depth":3}}`,
			change:   func(*jetstream.StreamConfig) {},
			want:     `{"name":"a","max_msgs":5,"novelty":{"depth":3}}`,
		},
		"a value": {
			why:      "one setting changes, the unknown one stays",
			reported: `{"name":"a","max_msgs":5,"novelty":true}`,
			change:   func(c *jetstream.StreamConfig) { c.MaxMsgs = 6 },
			want:     `{"name":"a","max_msgs":6,"novelty":true}`,
		},
		"none": {
			why:      "what becomes empty goes, for the library leaves it out",
			reported: `{"name":"a","description":"old","novelty":true}`,
			change:   func(c *jetstream.StreamConfig) { c.Description = "" },
			want:     `{"name":"a","novelty":true}`,
		},
		"inside": {
			why:      "a setting of several values that is not touched keeps unknown ones within",
			reported: `{"name":"a","max_msgs":5,"mirror":{"name":"b","novelty":true}}`,
			change:   func(c *jetstream.StreamConfig) { c.MaxMsgs = 6 },
			want:     `{"name":"a","max_msgs":6,"mirror":{"name":"b","novelty":true}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var before jetstream.StreamConfig
			if err := json.Unmarshal([]byte(tc.reported), &before); err != nil {
				t.Fatal(err)
			}
			after := before
			tc.change(&after)
			got, err := patched(json.RawMessage(tc.reported), before, after)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tree(t, []byte(tc.want)), tree(t, got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.why, diff)
			}
		})
	}
}

func tree(t *testing.T, b []byte) (x any) {
	t.Helper()
	if err := json.Unmarshal(b, &x); err != nil {
		t.Fatal(err)
	}
	return x
}
