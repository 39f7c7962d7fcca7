package run

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/disturb"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

// FlightTime is how long a write that has left its process may be on its way: the usual timeout of a request. A
// standby takes over in about half of that time.
const FlightTime = 30 * time.Second

// EffectTime is how long a call whose caller got a timeout may still be on its way: as long as the events of a watch may
// be late, which an operator can wait out.
const EffectTime = lateMost

// flight is a write that has left its process and has not arrived. Its caller does not wait for it any more.
type flight struct {
	call   history.Call
	before int       // the number of the call before which it arrives
	until  time.Time // by when it arrives in any case
	views  int       // of the external API by then: the last one is what it was meant for
	// land lets it take effect. It is given the call that is the arrival in the record, and may use nothing
	// of the caller, such as the context of the request.
	land func(arrival *history.Call)
}

// flights are the writes of one run that are on their way.
type flights struct {
	mu  sync.Mutex
	all []flight
}

// takeOff notes that a call is on its way, as a disturbance has it.
func (f *flights) takeOff(call *history.Call, d schedule.Disturbance, views int, land func(*history.Call)) {
	later, err := strconv.Atoi(d.Arg)
	if err != nil || later < 1 {
		later = 1
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	most := FlightTime
	if d.Kind == schedule.LateEffect {
		most = EffectTime
	}
	f.all = append(f.all, flight{*call, call.Index + later, time.Now().Add(most), views, land})
}

// due returns the first that arrives before a call of that number, or now because its time is over, and takes
// it out.
func (f *flights) due(call int) (flight, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := slices.IndexFunc(f.all, func(o flight) bool { return call >= o.before || !time.Now().Before(o.until) })
	if at < 0 {
		return flight{}, false
	}
	o := f.all[at]
	f.all = slices.Delete(f.all, at, at+1)
	return o, true
}

// last is by when all have arrived; zero if none is on its way.
func (f *flights) last() (last time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range f.all {
		if o.until.After(last) {
			last = o.until
		}
	}
	return last
}

// landOverdue lets the writes take effect whose time is over, and reports whether there was one.
func (c *calls) landOverdue() bool { return c.land(history.Nobody) }

// land lets the writes take effect that arrive before a call of that number, or now, and reports whether there was
// one. The arrival is a call of its own in the record, made by the process that sent it: so the record is in the
// order of the effects.
func (c *calls) land(before int) (landed bool) {
	for {
		f, ok := c.flights.due(before)
		if !ok {
			return landed
		}
		landed = true
		call := f.call
		call.Fault, call.Err = "", ""
		c.record.BeginCall(&call)
		c.record.Disturbed(schedule.Arrival, call.Index, call.What)
		c.effect(&call, func() { f.land(&call) })
		c.record.EndCall(&call)
		if call.Side == history.External && call.Changed && removesSuccessor(c.record.Run.External, f.views) {
			c.others.Void = true
		}
	}
}

// removesSuccessor reports whether the last change at the external API removed a resource that was created again after
// the first so many views of it. Few of these APIs have deletes with a precondition, so the operator could not help it.
func removesSuccessor(all []history.View, first int) bool {
	if len(all) < 2 || first < 1 || first >= len(all) {
		return false
	}
	has := func(v history.View, r history.Resource) bool {
		return slices.ContainsFunc(v.Resources, func(o history.Resource) bool { return o.Kind == r.Kind && o.ID == r.ID })
	}
	after := all[len(all)-1]
	return slices.ContainsFunc(all[len(all)-2].Resources, func(r history.Resource) bool {
		return !has(after, r) && slices.ContainsFunc(all[first-1:len(all)-1], func(v history.View) bool { return !has(v, r) })
	})
}

// asked is what a caller asks for.
type asked struct {
	// send lets it take effect.
	send func()
	// keep keeps what is needed to let it take effect when its caller has gone.
	keep func() (land func(arrival *history.Call))
}

// effective lets a call take effect now, later or never, as the schedule has it.
func (c *calls) effective(call *history.Call, d schedule.Disturbance, a asked) {
	switch {
	case disturb.Departs(d.Kind):
		c.flights.takeOff(call, d, len(c.record.Run.External), a.keep())
	case disturb.HasEffect(d.Kind):
		c.effect(call, a.send)
	}
}
