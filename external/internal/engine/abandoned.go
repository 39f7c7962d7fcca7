package engine

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
)

// maxAbandoned bounds the abandoned calls of one kind. Each holds a goroutine and whatever the
// driver has in it; beyond the bound no call is made.
const maxAbandoned = 100

// subject is the object that a call is about.
type subject struct {
	uid types.UID
	key objectKey
}

func subjectOf(obj client.Object) subject {
	return subject{uid: obj.GetUID(), key: client.ObjectKeyFromObject(obj)}
}

// abandonedCall is an abandoned call of the driver: its deadline has passed and it has not returned.
// Whether it still takes effect is unknown.
type abandonedCall struct {
	// method is the driver's method, action the call of the external API that it served;
	// ActionNone for other methods.
	method string
	action decide.Action
	// done is closed when the call has returned; answer is its outcome.
	done   chan struct{}
	answer lateAnswer
}

// lateAnswer is the outcome of an abandoned call.
type lateAnswer struct {
	failed bool
	class  decide.Class
	at     time.Time
}

// err tells users what is wrong with a driver that does not return.
func (a *abandonedCall) err() error {
	remedy := "it must obey its context"
	if a.action == decide.ActionNone {
		remedy = "it must not call anything and return at once"
	}
	return &unreturned{fmt.Sprintf("the driver has not returned from %s after its deadline; nothing is called for this object "+
		"until it does: %s, or the operator must be restarted", a.method, remedy)}
}

// abandonedCalls are the abandoned calls of one kind, by the UID of their object. The zero value is
// empty.
type abandonedCalls struct {
	mu    sync.Mutex
	byUID map[types.UID]*abandonedCall
	n     int
	// changed is called with the change of their number.
	changed func(by int)
	// returned is called with an object whose call has returned.
	returned func(objectKey)
}

// stuck returns why nothing may be called for an object; nil if it may.
func (l *abandonedCalls) stuck(uid types.UID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.byUID[uid]; a != nil && !a.hasReturned() {
		return a.err()
	}
	if l.n >= maxAbandoned {
		return &unreturned{fmt.Sprintf("%d calls of the driver have not returned after their deadlines; nothing is called until some do: "+
			"restart the operator; the driver must obey its context", maxAbandoned)}
	}
	return nil
}

func (a *abandonedCall) hasReturned() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// add notes an abandoned call. wait returns when the call does.
func (l *abandonedCalls) add(who subject, a *abandonedCall, wait func() lateAnswer) {
	a.done = make(chan struct{})
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byUID == nil {
		l.byUID = map[types.UID]*abandonedCall{}
	}
	if before := l.byUID[who.uid]; before == nil || before.action == decide.ActionNone {
		l.byUID[who.uid] = a
	}
	l.count(+1)
	go func() {
		answer := wait()
		l.mu.Lock()
		a.answer = answer
		close(a.done)
		if a.action == decide.ActionNone && l.byUID[who.uid] == a {
			delete(l.byUID, who.uid) // nobody waits for its answer
		}
		l.count(-1)
		returned := l.returned
		l.mu.Unlock()
		if returned != nil {
			returned(who.key)
		}
	}()
}

func (l *abandonedCalls) count(by int) {
	l.n += by
	if l.changed != nil {
		l.changed(by)
	}
}

// of returns the abandoned call of an object. still is true while the call runs; once it has
// returned, of returns it one more time with still false.
func (l *abandonedCalls) of(uid types.UID) (a *abandonedCall, still bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a = l.byUID[uid]
	if a == nil || !a.hasReturned() {
		return a, a != nil
	}
	delete(l.byUID, uid)
	return a, false
}
