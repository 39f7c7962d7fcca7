package external_test

import (
	"testing"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

// TestShownOfWhatIsNotThere: status shows what the author reflected of a thing for as long as there
// is a thing that is ours, and nothing that somebody else writes in its place.
func TestStatusOfWhatIsMissing(t *testing.T) {
	t.Parallel()
	evil := map[string]any{"status": map[string]any{"host": "evil", "external": map[string]any{"id": "evil"}}}
	showsNothing := func(o *thing.Thing) bool { return o.Status.Host == "" && o.Status.External == nil }
	t.Run("lost and not made again", func(t *testing.T) {
		w := newOperatorTest(t, named{})
		w.create()
		if got := w.ready(); got.Status.Host == "" || got.Status.External == nil {
			t.Fatalf("nothing is shown of a thing that is there: %+v", got.Status)
		}
		w.annotate(api.AnnotationAccess, "read-only")
		w.cloud.with(func() { delete(w.cloud.items, "a") })
		if got := w.pokeAs("a", "lost"); !showsNothing(got) {
			t.Errorf("host %q and %+v are shown of a thing that is gone", got.Status.Host, got.Status.External)
		}
		w.forge("a", evil)
		w.annotate(api.AnnotationReconcile, "forged")
		w.await("what somebody wrote to be overwritten", showsNothing)
	})
	t.Run("somebody else's", func(t *testing.T) {
		w := newOperatorTest(t, named{})
		w.cloud.put("a", item{Size: 7, State: "ONLINE"})
		w.create()
		w.failing("NotOurs")
		w.forge("a", evil)
		w.annotate(api.AnnotationReconcile, "forged")
		w.await("what somebody wrote to be overwritten", showsNothing)
	})
}
