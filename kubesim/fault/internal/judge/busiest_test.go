package judge

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/disturb"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
)

// TestBusiest proves that the report of a run that does not come to rest names reconciles that ended by themselves, and
// not the errors of those that were cut off when the run was stopped.
func TestBusiest(t *testing.T) {
	t.Parallel()
	pass := func(err string) history.Pass {
		return history.Pass{Controller: "c", Object: "default/a", Err: err, Ended: true}
	}
	killed := fmt.Sprintf("read the Secret: Get %q: %v", "https://sim/api/v1", disturb.ErrDead)
	const canceled = `Get "https://sim/api/v1": context canceled`
	const again = "controller c reconciles default/a again and again"
	later := func(p history.Pass, d time.Duration) history.Pass {
		p.Begin = p.Begin.Add(d)
		return p
	}
	for name, c := range map[string]struct {
		why    string
		passes []history.Pass
		want   string
	}{
		"killed":          {"its error comes from the stop", []history.Pass{pass("no such host"), pass(killed)}, again + ", with error: no such host"},
		"canceled":        {"a request that was cut off", []history.Pass{pass(""), pass(canceled), pass(killed)}, again},
		"not ended":       {"it has no error yet", []history.Pass{pass("no such host"), {Controller: "other", Object: "default/b"}}, again + ", with error: no such host"},
		"its own context": {"nothing else is known", []history.Pass{pass(canceled), pass(canceled)}, again + " at one moment" + ", with error: " + canceled},
		"no other":        {"the error says nothing", []history.Pass{pass(killed)}, again},
		"slowly":          {"time goes by", []history.Pass{pass(""), later(pass(""), time.Second), later(pass(""), 3*time.Second)}, again + ", the last 3 times within 3s"},
		"no pass":         {"nothing ran", nil, "no reconcile ran; look for a goroutine that calls the API in a loop"},
	} {
		if got := Busiest(&history.Run{Passes: c.passes}); got != c.want {
			t.Errorf("%s (%s): got  %s\nwant %s", name, c.why, got, c.want)
		}
	}
}

// TestLastWrite proves that a run that does not come to rest is blamed on the call that its sentence names, also if reads, leases and
// events follow: the report shows that call.
func TestLastWrite(t *testing.T) {
	t.Parallel()
	calls := []history.Call{
		{What: "create pods d/a", Write: true, Resource: "pods"},
		{What: "get pods d/a", Resource: "pods"},
		{What: "update leases d/l", Write: true, Group: "coordination.k8s.io", Resource: "leases"},
		{What: "create events d/e", Write: true, Resource: "events"},
	}
	r := run.Result{Err: run.ErrRestless, Run: &history.Run{Calls: calls, Passes: []history.Pass{{Ended: true}}}}
	if v := unfinished(r); v.Call != 0 || !strings.HasSuffix(v.Message, "; its last write is create pods d/a") {
		t.Errorf("got call %d, %q", v.Call, v.Message)
	}
	r.Run.Calls = calls[1:]
	if v := unfinished(r); v.Call != history.Nobody || strings.Contains(v.Message, "last write") {
		t.Errorf("nothing is written, got call %d, %q", v.Call, v.Message)
	}
}

// TestOutside proves that no reconcile is blamed for what a goroutine of the operator does after it.
func TestOutside(t *testing.T) {
	t.Parallel()
	r := &history.Run{Passes: []history.Pass{{Controller: "c", Object: "default/a", Ended: true, First: 1}}}
	for range goneOn + 1 {
		r.Calls = append(r.Calls, history.Call{What: "create pods d/a", Write: true, Resource: "pods", Pass: history.Nobody})
	}
	if got := Busiest(r); !strings.HasPrefix(got, "no reconcile makes the calls") || !strings.HasSuffix(got, "; its last write is create pods d/a") {
		t.Errorf("got %q", got)
	}
	r.Passes[0].First = 2 // so it began among these writes
	if got := Busiest(r); !strings.HasPrefix(got, "controller c reconciles") {
		t.Errorf("got %q", got)
	}
	r.Passes[0].First = 1
	r.Calls[10].Pass = 0
	if got := Busiest(r); !strings.HasPrefix(got, "controller c reconciles") {
		t.Errorf("got %q", got)
	}
}
