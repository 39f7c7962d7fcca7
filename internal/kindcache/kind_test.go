package kindcache

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestPause: a kind that is not served is looked for ever more rarely, also where CRDs can be watched: it may have none.
func TestPause(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		why    string
		d      time.Duration
		hears  bool
		kick   time.Duration // zero: none
		want   time.Duration
		kicked bool
	}{
		"first":             {"a CRD that was just created is not served at once", firstPause, true, 0, firstPause, false},
		"kicked":            {"the CRD changes meanwhile", firstPause, true, time.Millisecond, time.Millisecond, true},
		"long and watching": {"the watch of CRDs tells", mostPause, true, 30 * time.Minute, 30 * time.Minute, true},
		"without a CRD":     {"another API server will serve the kind", mostPause, true, 0, time.Hour, false},
		"long and deaf":     {"nothing tells", mostPause, false, 0, mostPause, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				k, began := &kind{kick: make(chan struct{}, 1)}, time.Now()
				if tt.kick > 0 {
					time.AfterFunc(tt.kick, k.kicked)
				}
				kicked := k.pause(ctx, tt.d, tt.hears)
				if took := time.Since(began); kicked != tt.kicked || took != tt.want {
					t.Errorf("%s: kicked %t after %s, want %t after %s", tt.why, kicked, took, tt.kicked, tt.want)
				}
			})
		})
	}
}
