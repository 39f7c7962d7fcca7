package external_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLifecycle(t *testing.T) {
	w := newWorld(t, things{})
	obj := w.create()
	w.ready()
	t.Log(w.trace.rules("a"), w.writes("a"), w.cloud.calls(true))
	if diff := cmp.Diff([]string{"patch", "apply status"}, w.writes("a")); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	w.requests.Reset()
	w.resize(2)
	w.ready()
	t.Log(w.trace.rules("a"), w.writes("a"), w.cloud.calls(true))
	w.requests.Reset()
	w.delete()
	w.gone()
	t.Log(w.trace.rules("a"), w.writes("a"), w.cloud.calls(true))
	_ = obj
}
