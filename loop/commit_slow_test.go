package loop

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/internal/probe"
)

// TestSlowCommit: an API server that answers late has what was sent to it, so the result of a pass is not given up and sent again. A process
// that shuts down waits for five seconds only.
func TestSlowCommit(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		why            string
		answer, stop   time.Duration // after the pass begins; zero means never
		took           time.Duration
		succeeds       bool
		deadline       time.Duration
		deadlineMissed bool
	}{
		"soon":                  {why: "this is usual", answer: time.Second, took: time.Second, succeeds: true},
		"late":                  {why: "a busy server needs a while", answer: 20 * time.Second, took: 20 * time.Second, succeeds: true},
		"never":                 {why: "by then, the API server has given up, too", took: time.Minute},
		"a short deadline":      {why: "writing is not what the author limits", deadline: time.Second, answer: 4 * time.Second, took: 4 * time.Second, succeeds: true},
		"the author was late":   {why: "that is recorded, too", deadlineMissed: true, answer: 2*time.Minute + 20*time.Second, took: 2*time.Minute + 20*time.Second},
		"stops, and soon":       {why: "what happened is recorded", stop: time.Second, answer: 5 * time.Second, took: 5 * time.Second, succeeds: true},
		"stops, and late":       {why: "the next process repeats the pass", stop: time.Second, answer: 20 * time.Second, took: 6 * time.Second},
		"stops before it wrote": {why: "there is as much time as later", stop: time.Nanosecond, took: 5 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				s := behind(t, nil, version("9", mine), func(ctx context.Context, _ *Run[*probe.Probe]) Outcome {
					if tt.deadlineMissed {
						<-ctx.Done()
						return Fail(ctx.Err())
					}
					<-time.After(2 * time.Nanosecond)
					return Done()
				})
				s.c.options.Deadline = tt.deadline
				s.c.client = interceptor.NewClient(s.server, interceptor.Funcs{
					SubResourcePatch: func(ctx context.Context, c client.Client, name string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
						err := c.SubResource(name).Patch(ctx, obj, p, opts...)
						s.writes = append(s.writes, name+" "+reasonOf(err))
						answered := make(<-chan time.Time)
						if tt.answer > 0 {
							answered = time.After(tt.answer - time.Since(began))
						}
						select {
						case <-answered:
							return err
						case <-ctx.Done():
							return ctx.Err()
						}
					},
				})
				process, stop := context.WithCancel(t.Context())
				defer stop()
				if tt.stop > 0 {
					time.AfterFunc(tt.stop, stop)
				}
				_, err := s.c.Reconcile(process, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "n", Name: "a"}})
				if took := time.Since(began).Truncate(time.Second); took != tt.took || (err == nil) != tt.succeeds {
					t.Errorf("the pass took %s and ended with %v; want %s, and that it succeeds: %t; %s", took, err, tt.took, tt.succeeds, tt.why)
				}
				if want := []string{"status ok"}; !slices.Equal(s.writes, want) {
					t.Errorf("it wrote %q, want %q", s.writes, want)
				}
			})
		})
	}
}
