package engine

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
)

// mostLeftBehind bounds the calls of one kind that were left behind. Each holds a goroutine
// and whatever the driver has in it; one more call than that is not made.
const mostLeftBehind = 100

// subject is the object that a call is about.
type subject struct {
	uid types.UID
	key objectKey
}

func subjectOf(obj client.Object) subject {
	return subject{uid: obj.GetUID(), key: client.ObjectKeyFromObject(obj)}
}

// abroad is a call of the author's code that was left behind: its deadline is long past and
// it has not returned. Whether it still takes effect nobody knows.
type abroad struct {
	// method is the author's, action the call of the external API that it was;
	// ActionNone for the others.
	method string
	action decide.Action
	// back is closed when it returned; answer is what it came to.
	back   chan struct{}
	answer lateAnswer
}

// lateAnswer is what a call came to that was left behind.
type lateAnswer struct {
	failed bool
	class  decide.Class
	at     time.Time
}

// err says for people what is wrong with a driver that does not return.
func (a *abroad) err() error {
	remedy := "it must obey its context"
	if a.action == decide.ActionNone {
		remedy = "it must not call anything and return at once"
	}
	return &unreturned{fmt.Sprintf("the driver has not returned from %s after its deadline; nothing is called for this object "+
		"until it does: %s, or the operator must be restarted", a.method, remedy)}
}

// leftBehind are the calls of one kind that were left behind, by the UID of their object. The
// zero value is empty.
type leftBehind struct {
	mu    sync.Mutex
	byUID map[types.UID]*abroad
	n     int
	// changed is told by how many they became more.
	changed func(by int)
	// returned is told of an object whose call is back.
	returned func(objectKey)
}

// stuck says why nothing may be called for an object; nil if it may.
func (l *leftBehind) stuck(uid types.UID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.byUID[uid]; a != nil && !a.isBack() {
		return a.err()
	}
	if l.n >= mostLeftBehind {
		return &unreturned{fmt.Sprintf("%d calls of the driver have not returned after their deadlines; nothing is called until some do: "+
			"restart the operator; the driver must obey its context", mostLeftBehind)}
	}
	return nil
}

func (a *abroad) isBack() bool {
	select {
	case <-a.back:
		return true
	default:
		return false
	}
}

// leave notes a call that was left behind. wait returns when it does.
func (l *leftBehind) leave(who subject, a *abroad, wait func() lateAnswer) {
	a.back = make(chan struct{})
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byUID == nil {
		l.byUID = map[types.UID]*abroad{}
	}
	if before := l.byUID[who.uid]; before == nil || before.action == decide.ActionNone {
		l.byUID[who.uid] = a
	}
	l.count(+1)
	go func() {
		answer := wait()
		l.mu.Lock()
		a.answer = answer
		close(a.back)
		if a.action == decide.ActionNone && l.byUID[who.uid] == a {
			delete(l.byUID, who.uid) // nobody waits for what it says
		}
		l.count(-1)
		returned := l.returned
		l.mu.Unlock()
		if returned != nil {
			returned(who.key)
		}
	}()
}

func (l *leftBehind) count(by int) {
	l.n += by
	if l.changed != nil {
		l.changed(by)
	}
}

// of returns the call of an object that was left behind: still true, if it is out there;
// false, and never again, once it is back.
func (l *leftBehind) of(uid types.UID) (a *abroad, still bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a = l.byUID[uid]
	if a == nil || !a.isBack() {
		return a, a != nil
	}
	delete(l.byUID, uid)
	return a, false
}
