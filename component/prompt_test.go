package component_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/trimtab-dev/trimtab/trace"
)

// promptly is how soon drift is corrected by a machine that has nothing else to do.
const promptly = 2 * time.Second

// delays are those that passes end with. It is a [trace.Sink].
type delays struct {
	mu  sync.Mutex
	all []time.Duration
}

// Record implements [trace.Sink].
func (d *delays) Record(r trace.Record) {
	if end, ok := r.Event.(trace.End); ok {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.all = append(d.all, end.Again)
	}
}

// prompt fails the test if something was corrected late. Nothing may wait for a timer: a pass ends without a
// delay, with a short one after a failure, or with the interval or the timeout of the component, which must be
// an hour. So an event caused the correction. A busy machine has as much more time as the work before took.
func (d *delays) prompt(t *testing.T, took, before time.Duration) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, again := range d.all {
		if again >= promptly && again < 30*time.Minute { // timeouts have passed in part
			t.Errorf("a pass put the next one off for %s", again)
		}
	}
	if len(d.all) == 0 {
		t.Error("there was no pass")
	}
	t.Logf("corrected within %s; the work before took %s", took, before)
	if most := promptly + before; took > most {
		t.Errorf("corrected after %s, want %s at most", took, most)
	}
}

// writes are the times at which writes of objects were answered last, by resource and name.
type writes struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// watch has the writes through a configuration noted.
func (w *writes) watch(cfg *rest.Config) {
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(r)
			if err == nil && r.Method != http.MethodGet && answer.StatusCode < http.StatusMultipleChoices {
				parts := strings.Split(r.URL.Path, "/")
				w.mu.Lock()
				defer w.mu.Unlock()
				if w.last == nil {
					w.last = map[string]time.Time{}
				}
				w.last[strings.Join(parts[max(0, len(parts)-2):], "/")] = time.Now()
			}
			return answer, err
		})
	})
}

// since returns how long after a moment an object was written; zero if it was written before.
func (w *writes) since(object string, moment time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(0, w.last[object].Sub(moment))
}
