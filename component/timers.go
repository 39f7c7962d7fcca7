package component

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// timers know when the work on components began, better than their statuses: to the nanosecond. They also
// know which warnings were given.
type timers struct {
	mu     sync.Mutex
	began  map[types.UID]time.Time
	warned map[types.UID]map[string]bool
}

// since returns when the work on a component began; zero if there is none.
func (t *timers) since(obj Object) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	said := obj.GetStatus().ProcessingSince
	began, known := t.began[obj.GetUID()]
	switch {
	case known:
		return began
	case said == nil || said.After(time.Now()): // of a backup, or of somebody's making
		return time.Time{}
	}
	return said.Time
}

// note keeps when the work on a component began.
func (t *timers) note(obj Object, began time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.began == nil {
		t.began = map[types.UID]time.Time{}
	}
	t.began[obj.GetUID()] = began
}

// mostWarned is how many warnings about a component are remembered.
const mostWarned = 100

// unsaid returns the warnings that were not given yet.
func (t *timers) unsaid(component types.UID, texts []string) []string {
	if len(texts) == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	said := t.warned[component]
	if said == nil || len(said) > mostWarned {
		said = map[string]bool{}
	}
	if t.warned == nil {
		t.warned = map[types.UID]map[string]bool{}
	}
	t.warned[component] = said
	return slices.DeleteFunc(slices.Clone(texts), func(text string) bool {
		known := said[text]
		said[text] = true
		return known
	})
}

func (t *timers) forget(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.began, uid)
	delete(t.warned, uid)
}
