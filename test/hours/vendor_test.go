package hours

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/trimtab-dev/trimtab/external"
	v1 "github.com/trimtab-dev/trimtab/samples/folder/api/v1"
)

// vendor is an API that answers at once and works for as long as it is told to.
type vendor struct {
	mu    sync.Mutex
	items map[string]*item
	calls []call
	begun map[string]*item // what operations create
	takes time.Duration    // to create or update a thing
	away  bool             // answers nothing but errors
	// meets is what a call comes to before anything else; nil is nothing.
	meets func(op, name string) error
	// answers: it returns what it made or changed; repeats: instead of updating, it returns what
	// was asked for.
	answers, repeats bool
	// hint is when to look again at a thing that works.
	hint time.Duration
}

// item is a thing as the vendor has it.
type item struct {
	readOnly bool
	mark     external.Mark
	word     string
	phase    external.Phase // while it works
	until    time.Time
}

// call is one call that the vendor had.
type call struct {
	op, name string
	at       time.Time
}

var errAway = errors.New("the vendor is away")

// do notes a call and does it unless the vendor is away.
func (v *vendor) do(op, name string, f func() error) error {
	v.mu.Lock()
	v.calls = append(v.calls, call{op, name, time.Now()})
	meets := v.meets
	v.mu.Unlock()
	if meets != nil {
		if err := meets(op, name); err != nil {
			return err
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.away {
		return errAway
	}
	return f()
}

// with changes the vendor behind the operator's back.
func (v *vendor) with(f func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f()
}

// meet lets f decide what calls come to.
func (v *vendor) meet(f func(op, name string) error) { v.with(func() { v.meets = f }) }

// all are the calls since a moment.
func (v *vendor) all(since time.Time) []call {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(v.calls), func(c call) bool { return c.at.Before(since) })
}

// had are the calls of one operation since a moment.
func (v *vendor) had(op string, since time.Time) []call {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []call
	for _, c := range v.calls {
		if c.op == op && !c.at.Before(since) {
			out = append(out, c)
		}
	}
	return out
}

// driver is the vendor's.
type driver struct{}

var (
	_ external.Driver[*v1.Folder, *vendor, bool]  = driver{}
	_ external.Updater[*v1.Folder, *vendor, bool] = driver{}
	_ external.Namer[*v1.Folder]                  = driver{}
	_ external.Dependent[*v1.Folder]              = driver{}
)

// annotationNeeds names another folder that must be Ready first.
const annotationNeeds = "example.org/needs"

func (driver) ExternalName(f *v1.Folder) (string, error) { return f.Name, nil }

func (driver) DependsOn(f *v1.Folder) []external.Dependency {
	needs := f.Annotations[annotationNeeds]
	if needs == "" && f.Name != "" {
		return nil
	}
	return []external.Dependency{{To: &v1.Folder{}, Name: needs}}
}

func (driver) Observe(_ context.Context, r external.ObserveRequest[*v1.Folder, *vendor]) (o external.Observation[bool], err error) {
	err = r.Client.do("observe", r.ID, func() error {
		i, there := r.Client.items[r.ID]
		switch {
		case !there:
			o = external.Missing[bool]()
		case time.Now().Before(i.until):
			o = external.Observation[bool]{Phase: i.phase, Have: i.readOnly, Mark: i.mark, PollAfter: r.Client.hint}
		default:
			o = external.Available(i.readOnly, i.mark)
			o.External = i.word
		}
		return nil
	})
	return o, err
}

func (driver) Compare(r external.CompareRequest[*v1.Folder, bool]) external.Changes {
	return external.Field("spec.readOnly", r.Object.Spec.ReadOnly, r.Have)
}

func (driver) Create(_ context.Context, r external.CreateRequest[*v1.Folder, *vendor]) (out external.CreateResponse[bool], err error) {
	err = r.Client.do("create", r.ID, func() error {
		r.Client.items[r.ID] = &item{readOnly: r.Object.Spec.ReadOnly, mark: r.Mark, phase: external.PhaseCreating, until: time.Now().Add(r.Client.takes)}
		out.Observed = r.Client.returns(r.ID, r.Object.Spec.ReadOnly)
		return nil
	})
	return out, err
}

func (driver) Update(_ context.Context, r external.UpdateRequest[*v1.Folder, *vendor, bool]) (out external.UpdateResponse[bool], err error) {
	err = r.Client.do("update", r.ID, func() error {
		if i := r.Client.items[r.ID]; !r.Client.repeats {
			i.readOnly, i.phase, i.until = r.Object.Spec.ReadOnly, external.PhaseUpdating, time.Now().Add(r.Client.takes)
		}
		out.Observed = r.Client.returns(r.ID, r.Object.Spec.ReadOnly)
		return nil
	})
	return out, err
}

func (driver) Delete(_ context.Context, r external.DeleteRequest[*v1.Folder, *vendor]) (out external.DeleteResponse, err error) {
	err = r.Client.do("delete", r.ID, func() error {
		delete(r.Client.items, r.ID)
		out.Gone = r.Client.answers
		return nil
	})
	return out, err
}

// returns is what the vendor returns with its answer to a change.
func (v *vendor) returns(name string, asked bool) *external.Observation[bool] {
	if !v.answers {
		return nil
	}
	i := v.items[name]
	o := external.Available(i.readOnly, i.mark)
	if time.Now().Before(i.until) {
		o.Phase = i.phase
	}
	if v.repeats {
		o.Have = asked
	}
	return &o
}
