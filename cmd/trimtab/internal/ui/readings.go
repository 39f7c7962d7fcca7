package ui

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
)

// readings are the states in which objects were read, for those that keep no history. Its zero value has none.
type readings struct {
	mu sync.Mutex
	of map[types.UID]reading
}

// reading is the state in which an object was read last, and the changes between readings.
type reading struct {
	state   string
	at      time.Time
	changes []model.Moment
}

const (
	// remembered is how many objects are remembered, and kept how many changes of each.
	remembered = 500
	kept       = 50
)

// apart is how long two readings may be apart to tell when a state began: a page that somebody looks at is read once in each beat.
const apart = 3 * beat

// note takes down in which state an object is now, and returns how that changed from one reading to the next, in the order of time.
// A state that began and ended between two readings is missing. After a longer gap, earlier readings are forgotten.
func (r *readings) note(uid types.UID, state string, now time.Time) []model.Moment {
	r.mu.Lock()
	defer r.mu.Unlock()
	if uid == "" || state == "" {
		return nil
	}
	last, known := r.of[uid]
	if now.Sub(last.at) > apart {
		last, known = reading{}, false
		delete(r.of, uid)
	}
	if known && last.state != state {
		last.changes = append(last.changes, model.Moment{
			At: metav1.NewTime(now), What: "state", From: last.state, To: state, By: "trimtab ui",
			Text: last.state + " → " + state + ": so this page has read it; states between two readings may be missing",
		})
		last.changes = last.changes[max(0, len(last.changes)-kept):]
	}
	if !known && len(r.of) >= remembered {
		r.forget()
	}
	last.state, last.at = state, now
	if r.of == nil {
		r.of = map[types.UID]reading{}
	}
	r.of[uid] = last
	return append([]model.Moment(nil), last.changes...)
}

// forget forgets the object that was not read for longest.
func (r *readings) forget() {
	var oldest types.UID
	for uid, reading := range r.of {
		if oldest == "" || reading.at.Before(r.of[oldest].at) {
			oldest = uid
		}
	}
	delete(r.of, oldest)
}
