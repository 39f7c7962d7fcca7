package nats

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
)

// A NATS that has just come up has reached no origin yet, and says so of all its mirrors: it is
// asked again until it can know, and no longer.
func TestAMirrorAfterARestartOfNATS(t *testing.T) {
	cases := map[string]struct {
		why       string
		connected time.Duration // how long ago
		reached   time.Duration // after how long NATS has an answer of the origin
		want      external.Phase
		took      time.Duration
	}{
		"at once":          {"the usual case", time.Second, 200 * time.Millisecond, external.PhaseAvailable, 250 * time.Millisecond},
		"slowly":           {"a cluster elects a leader first", time.Second, 3 * time.Second, external.PhaseAvailable, 3 * time.Second},
		"never":            {"NATS has had its time", time.Second, time.Hour, external.PhaseDegraded, 4250 * time.Millisecond},
		"long after":       {"there was no restart", time.Hour, time.Second, external.PhaseDegraded, 0},
		"reached long ago": {"nothing to wait for", time.Second, 0, external.PhaseAvailable, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				c := NewClient("here", func(context.Context, string, []byte) ([]byte, error) {
					active := -1
					if time.Since(began) >= tc.reached {
						active = 7
					}
					return fmt.Appendf(nil, `{"config":{"name":"copy"},"created":"1999-01-01T00:00:00Z","ts":%q,"mirror":{"name":"orders","active":%d}}`,
						time.Now().Format(time.RFC3339Nano), active), nil
				})
				c.up.Store(began.Add(-tc.connected).UnixNano())
				seen, err := Streams{}.Observe(t.Context(), external.ObserveRequest[*v1alpha1.Stream, *Client]{Client: c, Object: &v1alpha1.Stream{}, ID: "copy"})
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); seen.Phase != tc.want || took != tc.took {
					t.Errorf("%s: %s after %s; want %s after %s", tc.why, seen.Phase, took, tc.want, tc.took)
				}
			})
		})
	}
}
