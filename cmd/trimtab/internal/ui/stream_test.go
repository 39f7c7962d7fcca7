package ui

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestRest: while something changes all the time, a page is read once a second, and after the last change once more.
func TestRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		var reads []time.Time
		var state atomic.Int64
		show := func(context.Context, url.Values) (any, error) {
			reads = append(reads, time.Now())
			return state.Load(), nil
		}
		ctx, stop := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
		if err != nil {
			t.Fatal(err)
		}
		page, ended := httptest.NewRecorder(), make(chan struct{})
		go func() {
			defer close(ended)
			s.streamed(show)(page, r)
		}()
		const changes = 50
		for n := range int64(changes) {
			state.Store(n)
			<-time.After(100 * time.Millisecond)
			s.changes.changed()
		}
		state.Store(changes)
		s.changes.changed()
		<-time.After(3 * time.Second)
		stop()
		<-ended
		if n := len(reads); n < 4 || n > 8 {
			t.Errorf("%d reads in 5 s of changes and 3 s without, want one a second at most", n)
		}
		for i := 1; i < len(reads); i++ {
			if pause := reads[i].Sub(reads[i-1]); pause < time.Second {
				t.Errorf("read %d came %s after the one before", i, pause)
			}
		}
		if body := strings.ReplaceAll(page.Body.String(), ":\n\n", ""); !strings.HasSuffix(body, "data: "+strconv.Itoa(changes)+"\n\n") {
			t.Errorf("the last change is not shown (signs of life left out):\n%s", body)
		}
	})
}
