package target

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// server answers or does not.
type server struct {
	err   error
	code  int // zero means 200
	delay time.Duration
	asked int
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.asked++
	select {
	case <-time.After(s.delay):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	if s.err != nil {
		return nil, s.err
	}
	return &http.Response{StatusCode: cmp.Or(s.code, http.StatusOK), Body: io.NopCloser(strings.NewReader(""))}, nil
}

// rig is a server with what is known of it.
type rig struct {
	*server
	reach

	t       *testing.T
	changes int
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{server: &server{}, t: t}
	r.reach = reach{server: "https://there", changed: func() { r.changes++ }}
	return r
}

// send sends a request.
func (r *rig) send(ctx context.Context, query string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://there/api?"+query, http.NoBody)
	if err != nil {
		r.t.Fatal(err)
	}
	answer, err := transport{&r.reach, r.server}.RoundTrip(request)
	if err == nil {
		err = answer.Body.Close()
	}
	return err
}

func (r *rig) check() error {
	return r.reach.check(r.t.Context(), func(ctx context.Context) error { return r.send(ctx, "") })
}

func TestReach(t *testing.T) {
	t.Run("one lost request is no news", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.err = errors.New("refused")
			if err := r.send(t.Context(), ""); !Unreachable(err) || !strings.Contains(err.Error(), "https://there") {
				t.Errorf("error %v does not name the server", err)
			}
			if err := r.check(); err != nil || r.changes != 0 {
				t.Errorf("%v after one failure, %d changes", err, r.changes)
			}
		})
	})
	t.Run("down and up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.err = errors.New("refused")
			_ = r.send(t.Context(), "")
			<-time.After(grace)
			_ = r.send(t.Context(), "")
			if r.changes != 1 {
				t.Fatalf("%d changes", r.changes)
			}
			asked := r.asked
			for range 1000 {
				if err := r.check(); !Unreachable(err) {
					t.Fatalf("error %v", err)
				}
				<-time.After(10 * time.Millisecond)
			}
			if n := r.asked - asked; n != 10 {
				t.Errorf("%d requests in ten seconds", n)
			}
			r.err = nil
			<-time.After(probing)
			if err := r.check(); err != nil || r.changes != 2 {
				t.Errorf("%v after an answer, %d changes", err, r.changes)
			}
			asked = r.asked
			if err := r.check(); err != nil || r.asked != asked {
				t.Errorf("a check of a server that answers: %v, %d requests", err, r.asked-asked)
			}
		})
	})
	t.Run("credentials", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.code = http.StatusUnauthorized
			if err := r.send(t.Context(), "watch=true"); !Unreachable(err) || !strings.Contains(err.Error(), "https://there does not accept") {
				t.Errorf("error %v", err)
			}
			if err := r.check(); !Unreachable(err) || r.changes != 1 {
				t.Errorf("%v, %d changes", err, r.changes)
			}
		})
	})
	t.Run("time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.delay = time.Hour
			began := time.Now()
			if err := r.send(t.Context(), ""); !Unreachable(err) || time.Since(began) != patience {
				t.Errorf("%v after %s", err, time.Since(began))
			}
			if err := r.send(t.Context(), "watch=true"); err != nil {
				t.Errorf("a watch ended: %v", err)
			}
			r.err = errors.New("refused")
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := r.send(ctx, ""); Unreachable(err) {
				t.Errorf("the caller gave up: %v", err)
			}
		})
	})
}
