// Package sandbox is what one run plays in: a simulated cluster with its own controllers, and the
// external API. It notes who changed what there.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/state"
	"github.com/trimtab-dev/trimtab/kubesim/internal/actor"
	"github.com/trimtab-dev/trimtab/kubesim/internal/apiserver"
	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// Settings are what all sandboxes of a worker have in common.
type Settings struct {
	Server *apiserver.Server
	Scheme *runtime.Scheme
	Mapper meta.RESTMapper
	Roles  *apiserver.Roles // nil: the operator is an administrator
	// Webhooks are configurations that the cluster has from the start.
	Webhooks []store.Stored
	// Make makes the external API; nil if there is none. Lag is how long its reads may be behind.
	Make func() *External
	Lag  time.Duration
	// Actors act when the cluster's own controllers have nothing to do.
	Actors []Actor
	// State says what else to leave out of comparisons.
	State state.Options
	// Memory is that of all runs of a worker.
	Memory *Memory
}

// Sandbox is the sandbox of one run.
type Sandbox struct {
	Settings

	// DB is what the cluster stores.
	DB *store.DB
	// LastChange is when something changed last.
	LastChange time.Time
	// Refused returns how often a webhook of the operator did not admit a request, or could not be asked.
	Refused func() int

	admin    client.Client
	actors   *actor.Actors
	external *External
	earlier  *External // before the last write, for reads that lag
	written  time.Time // when that was
	record   *history.Recorder
	idle     moment // at which the scenario's actors had nothing to do
	refused  bool   // what somebody did last, by a webhook
	last     shown
}

// New makes a fresh sandbox.
func New(s Settings, record *history.Recorder) (*Sandbox, error) {
	b := &Sandbox{Settings: s, record: record, LastChange: time.Now()}
	if s.Make != nil {
		b.external = s.Make()
	}
	if err := checkExternal(s.Make != nil, b.external, s.Lag); err != nil {
		return nil, err
	}
	if s.Memory.first == nil {
		if err := s.begin(); err != nil {
			return nil, err
		}
	}
	b.DB = s.Memory.first.Open()
	if err := b.connect(); err != nil {
		return nil, err
	}
	b.Observe(history.Nobody)
	return b, nil
}

// begin keeps what each cluster begins with.
func (s Settings) begin() error {
	db := s.Server.Begin()
	if err := apiserver.Populate(db); err != nil {
		return err
	}
	if s.Roles != nil {
		if _, err := s.Roles.Install(db); err != nil {
			return err
		}
	}
	for _, w := range s.Webhooks {
		db.Load(w.Key, w.Data)
	}
	apiserver.Warm(db)
	s.Memory.first = db.Snapshot()
	return nil
}

// connect makes what acts in the sandbox.
func (s *Sandbox) connect() error {
	s.Memory.tidy()
	config := &rest.Config{Host: "http://kubesim", QPS: -1, UserAgent: "kubectl", Transport: &apiserver.Transport{
		Server: s.Server, Client: apiserver.Client{DB: s.DB},
	}}
	admin, err := client.New(config, client.Options{Scheme: s.Scheme, Mapper: s.Mapper})
	if err != nil {
		return err
	}
	s.admin = reader{client.WithFieldValidation(admin, metav1.FieldValidationStrict), s} // a step's typing error is reported
	s.actors = actor.New(s.Server, s.DB)
	return nil
}

// World is what users and others act on.
func (s *Sandbox) World() *World { return &World{Client: s.admin, External: s.external} }

// Do lets somebody besides the operator act, and notes what came of it.
func (s *Sandbox) Do(by string, act func(ctx context.Context, w *World) error) error {
	before, refusals := s.DB.Revision(), s.Refused()
	err := act(context.Background(), s.World())
	if err != nil && s.Refused() > refusals {
		err = RefusedError{err}
	}
	s.record.Mark(before, s.DB.Revision(), by, history.Nobody)
	s.Observe(history.Nobody)
	s.LastChange = time.Now()
	return err
}

// RefusedError is that of somebody whose request a webhook of the operator did not admit, or could not be asked about.
type RefusedError struct{ error }

// Unwrap is what the API server answered.
func (r RefusedError) Unwrap() error { return r.error }

// IsRefused reports whether an error comes from a webhook of the operator.
func IsRefused(err error) bool { return errors.As(err, new(RefusedError)) }

// Act lets the cluster's own controllers do one thing, or else the scenario's actors, and reports whether
// there was one.
func (s *Sandbox) Act() (bool, error) {
	for _, a := range s.actors.Enabled() {
		before := s.DB.Revision()
		if err := s.unlessRefused(func() error { return a.Do(context.Background()) }); err != nil {
			return false, fmt.Errorf("%s: %s: %w", a.By, a.What, err)
		}
		if s.DB.Revision() == before && s.refused {
			continue
		}
		s.record.Mark(before, s.DB.Revision(), a.By, history.Nobody)
		s.LastChange = time.Now()
		return true, nil
	}
	return s.letActors()
}

// unlessRefused drops an error that comes from a webhook of the operator: all controllers try again later.
func (s *Sandbox) unlessRefused(do func() error) error {
	before := s.Refused()
	err := do()
	s.refused = s.Refused() > before
	if s.refused {
		return nil
	}
	return err
}

// ObjectOf names the object that a call is about.
func (s *Sandbox) ObjectOf(c *history.Call) (*unstructured.Unstructured, error) {
	gvk, err := s.Mapper.KindFor(schema.GroupVersionResource{Group: c.Group, Resource: c.Resource})
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(c.Namespace)
	u.SetName(c.Name)
	return u, nil
}

// State is what there is now on both sides, without what differs from run to run, and without the CRDs that
// nobody has changed.
func (s *Sandbox) State() history.State {
	rows, things := s.DB.Rows(), s.Resources()
	if last := s.last; last.rev == s.DB.Revision() && slices.Equal(last.things, things) {
		return last.state
	}
	s.last = shown{s.DB.Revision(), things, s.stateOf(rows, things)}
	return s.last.state
}

// shown is a state that somebody wanted to see, and when.
type shown struct {
	rev    int64
	things []history.Resource
	state  history.State // is not modified
}

func (s *Sandbox) stateOf(rows []store.Stored, things []history.Resource) history.State {
	var objects []state.Object
	for _, row := range rows {
		if row.Rev == store.First {
			continue
		}
		if d := s.decode(row.Key, row.Data, row.Rev); d.object != nil {
			objects = append(objects, state.Object{Group: d.resource.Group, Resource: d.resource.Resource, Object: d.object})
		}
	}
	w := state.Of(objects, things, s.Settings.State)
	w.Given = s.sheetOfGiven // without the cluster
	for key, crd := range s.Server.Given() {
		byKey := func(row store.Stored, key string) int { return strings.Compare(row.Key, key) }
		if _, is := slices.BinarySearchFunc(rows, key, byKey); !is {
			w.Objects[keyOfGiven(crd.Name)] = history.Gone
		}
	}
	return w
}

// sheetOfGiven returns the YAML of a CRD that each cluster begins with. It is safe for concurrent use.
func (s Settings) sheetOfGiven(key string) string {
	for _, row := range s.Server.Begin().Rows() {
		if keyOfGiven(s.Server.Given()[row.Key].Name) != key {
			continue
		}
		if gr, u, err := s.Server.Object(row.Key, row.Data); err == nil {
			return state.Sheet(state.Object{Group: gr.Group, Resource: gr.Resource, Object: u}, s.State)
		}
	}
	return ""
}

// keyOfGiven is the key of a CRD in a state.
func keyOfGiven(name string) string {
	return state.Key(apiextensionsv1.GroupName, "customresourcedefinitions", "", name)
}

// decoded is an object that was decoded once already.
type decoded struct {
	resource schema.GroupResource
	object   *unstructured.Unstructured
}

// decode decodes what is stored under a key at a revision. Nothing may modify it.
func (s *Sandbox) decode(key string, data []byte, rev int64) decoded {
	if data == nil {
		return decoded{}
	}
	id := fmt.Sprintf("%s@%d\x00%s", key, rev, data)
	if d, ok := s.Memory.objects[id]; ok {
		return d
	}
	gr, u, err := s.Server.Object(key, data)
	if err != nil {
		return decoded{} // no kind of ours; discovery lists none either
	}
	u.SetResourceVersion(fmt.Sprint(rev))
	d := decoded{gr, u}
	s.Memory.objects[id], s.Memory.bytes = d, s.Memory.bytes+len(data)
	return d
}

// Before returns the revision before the last so many changes of some kinds; 0 if there were not so many after
// revision since.
func (s *Sandbox) Before(changes int, since int64, of func(group, resource string) bool) int64 {
	for _, c := range slices.Backward(s.DB.History()) {
		if c.Rev <= since {
			break
		}
		shown := s.decode(c.Key, c.After, c.Rev)
		if shown.object == nil {
			shown = s.decode(c.Key, c.Before, c.PrevRev)
		}
		if shown.object == nil || !of(shown.resource.Group, shown.resource.Resource) {
			continue
		}
		if changes--; changes <= 0 {
			return c.Rev - 1
		}
	}
	return 0
}

// Complete puts into the record what the storage kept.
func (s *Sandbox) Complete() {
	marks := s.record.Marks()
	for _, c := range s.DB.History() {
		before, after := s.decode(c.Key, c.Before, c.PrevRev), s.decode(c.Key, c.After, c.Rev)
		shown := after
		if shown.object == nil {
			shown = before
		}
		if shown.object == nil {
			continue
		}
		h := history.Change{
			Rev: c.Rev, At: c.At, Group: shown.resource.Group, Resource: shown.resource.Resource,
			Namespace: shown.object.GetNamespace(), Name: shown.object.GetName(), Before: before.object, After: after.object,
		}
		marks = h.Attribute(marks)
		s.record.Run.Changes = append(s.record.Run.Changes, h)
	}
}

// Snapshot is all that outlives a crash, at one point of a run.
type Snapshot struct {
	// At is when it was taken, Waits until when the step itself lets time pass.
	At, Waits time.Time
	// Position is how much of the record there was.
	Position history.Position

	db        *store.Snapshot
	external  *External
	resources []history.Resource // that the external API showed
	marks     []history.Mark
}

// Snapshot keeps what is durable during a call. It is nil if the external API cannot be copied.
func (s *Sandbox) Snapshot(call int, waits time.Time) (*Snapshot, error) {
	kept := &Snapshot{
		At: time.Now(), Waits: waits, Position: s.record.Position(call), db: s.DB.Snapshot(), marks: s.record.Marks(),
	}
	switch {
	case s.external == nil:
		return kept, nil
	case s.external.Copy == nil:
		return nil, nil
	}
	kept.external, kept.resources = s.external.Copy(), s.Resources()
	if kept.external.Copy == nil {
		return nil, MisuseError(fmt.Sprintf("the Clone of a %T is a %T, which has no method Clone itself; return what it was made of", s.external.Fake, kept.external.Fake))
	}
	return kept, nil
}

// IsSameAs reports whether nothing lies between two snapshots.
func (s *Snapshot) IsSameAs(earlier *Snapshot) bool {
	return s.db.Revision() == earlier.db.Revision() && s.Position.Views == earlier.Position.Views
}

// Resume makes a sandbox as it was at a snapshot of another run, of which record says how it began.
func Resume(s Settings, record *history.Recorder, from *Snapshot, of *history.Run) (*Sandbox, error) {
	b := &Sandbox{Settings: s, DB: from.db.Open(), record: record, LastChange: time.Now()}
	if from.external != nil {
		b.external = from.external.Copy()
	}
	record.Resume(of, from.Position, from.marks)
	if err := b.checkCopy(from.resources); err != nil {
		return nil, err
	}
	return b, b.connect()
}
