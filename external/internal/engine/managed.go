package engine

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/internal/guard"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/trace"
)

// managed is the object that a pass manages: the copy that the pass works on, what this process
// remembers of the object, and the facts so far.
type managed struct {
	e        *Engine
	run      Run
	obj      Object
	trace    *trace.Pass
	track    *track
	settings settings
	// copy is what the driver gets to see of obj; nil if obj has changed since.
	copy Object
	// hangs is why nothing may be called for the object. out is the object's own abandoned call,
	// if that is why.
	hangs     error
	abandoned *abandonedCall
	// waiting are the dependencies that are not ready, and needs those that exist, by role.
	waiting []loop.Dep
	needs   map[string]client.Object

	facts decide.Facts
	last  answer // to the last call
}

func (p *managed) uid() types.UID { return p.obj.GetUID() }

// lend returns a copy of the object for the driver, which may keep it beyond the end of the pass.
// Calls of one pass share it as long as the object does not change.
func (p *managed) lend() Object {
	if p.copy == nil {
		p.copy, _ = p.obj.DeepCopyObject().(Object)
	}
	return p.copy
}

// use continues with another object in place of obj.
func (p *managed) use(obj Object) {
	p.obj = obj
	p.run.SetObject(obj)
}

// basis returns what the API's refusal of a call depends on.
func (p *managed) basis() basis {
	return basis{
		generation: p.obj.GetGeneration(), policy: p.settings.policy, login: p.track.login,
		requested: p.obj.GetAnnotations()[api.AnnotationReconcile],
	}
}

// gatherReport updates the facts that every report needs, even that of a pass that decides nothing.
func (p *managed) gatherReport() {
	f := &p.facts
	f.Deleting, f.Generation = !p.obj.GetDeletionTimestamp().IsZero(), p.obj.GetGeneration()
	if f.Deleting {
		f.SinceDelete = time.Since(p.obj.GetDeletionTimestamp().Time)
	}
	f.LastReport, f.ReadyFor = p.track.lastReport.LastReport, p.track.lastReport.ReadyFor
	p.track.occurred.Add(p.obj.TrimtabStatus().Conditions) // also of an earlier process
}

func (p *managed) event(kind, reason, note string) { p.run.Event(kind, reason, note) }

// logPanic logs a panic of the driver, if there was one.
func (p *managed) logPanic(crash *guard.PanicError) {
	if crash != nil {
		p.run.Log().Error(crash, "the driver panicked", "method", crash.Method, "stack", string(crash.Stack))
	}
}

// outdated ends a pass over a stale copy; the loop repeats it with a newer one.
func (p *managed) outdated(why error) error {
	return loop.Outdated(fmt.Errorf("%s %s: %w", p.e.kind, p.obj.GetName(), why))
}

// wish is what a spec, and what it refers to, ask of a resource. The zero value means unknown.
type wish struct {
	generation int64
	hash       string
}

// same reports whether w is known and equals now.
func (w wish) same(now wish) bool { return w.hash != "" && w == now }

// tracks are what this process remembers, by UID. The zero value is empty.
type tracks struct {
	mu    sync.Mutex
	byUID map[types.UID]*track
	swept time.Time
}

const (
	// trackKept is how long the track of an object that is not reconciled is kept: somebody else
	// may have removed its finalizer.
	trackKept = 48 * time.Hour
	// releasedKept is how long the track of an object is kept after its finalizer was removed.
	releasedKept = 10 * time.Minute
)

// of returns the track of an object. Only the pass over that object uses it.
func (t *tracks) of(uid types.UID) *track {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if t.byUID == nil {
		t.byUID = map[types.UID]*track{}
	}
	if now.Sub(t.swept) > releasedKept {
		t.swept = now
		maps.DeleteFunc(t.byUID, func(_ types.UID, x *track) bool { return x.idle(now) })
	}
	x, ok := t.byUID[uid]
	if !ok {
		x = &track{begun: now}
		t.byUID[uid] = x
	}
	x.visited = now
	return x
}

// idle reports whether t will not be used again.
func (t *track) idle(now time.Time) bool {
	kept := trackKept
	if t.released {
		kept = releasedKept
	}
	return now.Sub(t.visited) > kept
}
