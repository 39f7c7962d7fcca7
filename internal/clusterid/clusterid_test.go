package clusterid

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/poll"
)

// slowReader returns a UID once it is released.
type slowReader struct {
	client.Reader
	began, release chan struct{}
	reads          atomic.Int32
}

func (r *slowReader) Get(ctx context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	r.reads.Add(1)
	r.began <- struct{}{}
	select {
	case <-r.release:
	case <-ctx.Done():
		return ctx.Err()
	}
	obj.SetUID("c1")
	return nil
}

// reply is the result of one caller of Get.
type reply struct {
	uid string
	err error
}

func request(ctx context.Context, c *Reader, r client.Reader) <-chan reply {
	out := make(chan reply, 1)
	go func() {
		uid, err := c.Get(ctx, r)
		out <- reply{uid, err}
	}()
	return out
}

// answerOf waits for the result of a caller.
func answerOf(t *testing.T, why string, out <-chan reply) reply {
	t.Helper()
	select {
	case got := <-out:
		return got
	case <-time.After(poll.Patience):
		t.Fatalf("%s: it gets no answer", why)
	}
	return reply{}
}

// TestClusterHoldsUpNobody checks that a caller waits for another's read no longer than its own
// pass lasts.
func TestClusterHoldsUpNobody(t *testing.T) {
	t.Parallel()
	var c Reader
	r := &slowReader{began: make(chan struct{}, 1), release: make(chan struct{})}
	first := request(t.Context(), &c, r)
	<-r.began
	ended, end := context.WithCancel(t.Context())
	end()
	if got := answerOf(t, "whose pass has ended", request(ended, &c, r)); !errors.Is(got.err, context.Canceled) {
		t.Errorf("a pass that has ended gets %+v", got)
	}
	close(r.release)
	if got := answerOf(t, "who asked first", first); got.uid != "c1" || got.err != nil {
		t.Errorf("who asked first gets %+v", got)
	}
}

// TestClusterIsAskedOnce checks that concurrent callers share one read and its result.
func TestClusterIsAskedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c Reader
		r := &slowReader{began: make(chan struct{}, 9), release: make(chan struct{})}
		three := []<-chan reply{request(t.Context(), &c, r), request(t.Context(), &c, r), request(t.Context(), &c, r)}
		for i, out := range three {
			if got := <-out; !errors.Is(got.err, context.DeadlineExceeded) {
				t.Errorf("number %d of those who asked at once gets %+v", i, got)
			}
		}
		if n := r.reads.Load(); n != 1 {
			t.Errorf("%d reads for three who asked at once", n)
		}
		close(r.release)
		for range 2 {
			if got := <-request(t.Context(), &c, r); got.uid != "c1" || got.err != nil {
				t.Errorf("who asks later gets %+v", got)
			}
		}
		if n := r.reads.Load(); n != 2 {
			t.Errorf("%d reads; want one that failed and one that did not", n)
		}
	})
}
