package external_test

import (
	"encoding/json"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// TestShownAfterItsEnd: an object is deleted and made again under its name, and observations still show
// what the first one had. Nothing else wakes the second one when that is over.
func TestShownAfterItsEnd(t *testing.T) {
	t.Parallel()
	for name, unmarked := range map[string]bool{"with marks": false, "without marks": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newOperatorTest(t, named{}, func(o *options) { o.CreateGrace, o.Unmarked = 3*time.Second, unmarked })
			w.create()
			w.ready()
			before, err := json.Marshal(w.cloud.get("a"))
			if err != nil {
				t.Fatal(err)
			}
			w.delete()
			w.gone()
			var looks atomic.Int32
			w.cloud.faulty(func(method, _ string) *answer {
				if method == http.MethodGet && looks.Add(1) <= 2 {
					return &answer{code: http.StatusOK, body: string(before)}
				}
				return nil
			})
			w.create()
			w.ready()
		})
	}
}

// TestDeleteThatSeesNothing: a delete soon after the create is answered by 404, as are the observations
// that follow, because what answers them is behind.
func TestDeleteThatSeesNothing(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, named{}, func(o *options) { o.CreateGrace = 3 * time.Second })
	w.create()
	w.ready()
	var deletes, looks atomic.Int32
	w.cloud.faulty(func(method, _ string) *answer {
		switch {
		case method == http.MethodDelete && deletes.Add(1) == 1,
			method == http.MethodGet && deletes.Load() == 1 && looks.Add(1) == 1:
			return &answer{code: http.StatusNotFound}
		}
		return nil
	})
	w.delete()
	w.goneWithResource()
}
