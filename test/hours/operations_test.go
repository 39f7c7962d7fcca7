package hours

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
	v1 "github.com/trimtab-dev/trimtab/samples/folder/api/v1"
	"github.com/trimtab-dev/trimtab/trace"
)

// operated are folders that the vendor creates in operations.
type operated struct{ driver }

func (operated) Create(_ context.Context, r external.CreateRequest[*v1.Folder, *vendor]) (out external.CreateResponse[bool], err error) {
	err = r.Client.do("create", r.ID, func() error {
		r.Client.begun[r.ID] = &item{mark: r.Mark, until: time.Now().Add(r.Client.takes)}
		out.Operation.ID = "op of " + r.ID
		return nil
	})
	return out, err
}

func (operated) Poll(_ context.Context, r external.PollRequest[*v1.Folder, *vendor]) (out external.PollResponse[bool], err error) {
	err = r.Client.do("poll", r.ID, func() error {
		name := strings.TrimPrefix(r.Operation, "op of ")
		if out.Done = !time.Now().Before(r.Client.begun[name].until); out.Done {
			r.Client.items[name] = r.Client.begun[name]
		}
		return nil
	})
	return out, err
}

// TestManyOperations: operations of ten minutes occupy nobody, and each is about one thing.
func TestManyOperations(t *testing.T) {
	t.Run("E0-02 a thousand creates in operations of ten minutes, one worker", func(t *testing.T) {
		const n = 1000
		one := func(o *options) { o.Loop.Workers, o.DriftInterval = 1, -1 }
		inHoursOf(t, one, func(w *simulation) {
			w.vendor.takes, w.vendor.begun = 10*time.Minute, map[string]*item{}
			began := time.Now()
			for i := range n {
				w.create(fmt.Sprintf("f%03d", i), "")
			}
			w.pass(time.Minute)
			if got := len(w.vendor.had("create", began)); got != n {
				t.Errorf("%d creates within a minute, want %d", got, n)
			}
			if f := w.get("f999"); !is(f, api.ConditionCreating) || !strings.Contains(f.Status.Message, `(operation "op of f999")`) {
				t.Errorf("status %+v", f.Status)
			}
			w.pass(11 * time.Minute)
			for _, e := range records[trace.End](w) {
				if e.Took >= time.Second {
					t.Fatalf("a visit occupied the worker for %s", e.Took)
				}
			}
			created, read := map[string]int{}, map[string]int{}
			for _, c := range w.vendor.all(began) {
				switch c.op {
				case "create":
					created[c.name]++
				case "observe":
					if read[c.name]++; read[c.name] > 2 { // before the create, and after it
						t.Errorf("%s is read %d times", c.name, read[c.name])
					}
				case "update", "delete":
					t.Errorf("%s of %s", c.op, c.name)
				}
			}
			if len(created) != n || len(read) != n || len(w.vendor.items) != n {
				t.Errorf("%d ids were created and %d read, of %d objects; there are %d things", len(created), len(read), n, len(w.vendor.items))
			}
			for i := range n {
				f := w.get(fmt.Sprintf("f%03d", i))
				if !is(f, api.ConditionReady) || created[f.Status.External.ID] != 1 || read[f.Status.External.ID] == 0 {
					t.Errorf("%s: %+v", f.Name, f.Status)
				}
			}
		}, func(w *simulation) { w.drives = operated{} })
	})
}
