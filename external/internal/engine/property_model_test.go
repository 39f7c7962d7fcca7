package engine

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/external/internal/record"
)

// The world of TestNobodyTakesWhatIsNotHis: two clusters with two namespaces each, whose users
// copy, restore and forge whatever they can write, and one API. It keeps its own account of who
// owns each resource.

// commonsKind is a kind of API.
type commonsKind struct {
	name             string
	unmarked, marker bool
	clusters         int
}

// commonsMutant is an engine with a former or a forbidden rule; the zero mutant has none.
type commonsMutant struct {
	trustsCopies, trustsAdopted, blindToClusters, noClaims, noMarks, noLimits, noEndpoints, trustsGiven, wishesFirst bool
}

// deed is a resource and its rightful owner.
type deed struct {
	id    string
	mark  map[string]string
	value int
	owner *holder // nil: nobody's, or a foreign owner's
	made  bool    // by an object, not by an outsider
}

// holder is an object.
type holder struct {
	c           *realm
	uid         string
	ns, name    string
	spec        string // the resource's name
	want        int
	annotations settingsOf
	rec         string
	created     time.Time
	finalizer   bool
	deleting    bool
	gone        bool
	tampered    bool // its own users wrote its record
	last        decide.Decision
}

// settingsOf are the annotations that limit what may be done.
type settingsOf struct{ adoption, deletion, endpoint string }

func (h *holder) key() string { return h.ns + "/" + h.name }

// realm is a cluster with its operator.
type realm struct {
	id       string
	endpoint string
	objects  []*holder
	tracks   map[string]*track
	process  int
}

type commons struct {
	k       commonsKind
	m       commonsMutant
	rng     *rand.Rand
	now     int
	serial  int
	realms  []*realm
	things  map[string]map[string]*deed // by endpoint and id
	lost    map[string]*holder          // by endpoint and id: who had what an outsider removed
	backup  []holder
	policy  bool // only the operator writes records of living objects
	steps   int
	broken  string
	tracing bool
	story   []string
	stops   map[decide.Reason]int
}

func newCommons(k commonsKind, m commonsMutant, policy bool, seed uint64) *commons {
	w := &commons{k: k, m: m, policy: policy, rng: rand.New(rand.NewPCG(seed, 7)), stops: map[decide.Reason]int{}, lost: map[string]*holder{}, things: map[string]map[string]*deed{"east": {}, "west": {}}}
	for range k.clusters {
		w.realms = append(w.realms, w.founded())
	}
	return w
}

func (w *commons) founded() *realm {
	return &realm{id: "cluster-" + w.next(), endpoint: "east", tracks: map[string]*track{}}
}

func (w *commons) next() string          { w.serial++; return strconv.Itoa(w.serial) }
func (w *commons) clock() time.Time      { return time.Unix(int64(w.now), 0) }
func (w *commons) chance(p int) bool     { return w.rng.IntN(100) < p }
func pick[V any](r *rand.Rand, v ...V) V { return v[r.IntN(len(v))] }

func (w *commons) log(format string, args ...any) {
	if !w.tracing {
		return
	}
	w.story = append(w.story, fmt.Sprintf(format, args...))
	if len(w.story) > 40 {
		w.story = w.story[1:]
	}
}

func (w *commons) fail(h *holder, what string) {
	if w.broken == "" {
		w.broken = fmt.Sprintf("%s %s (uid %s) in %s", h.key(), what, h.uid, h.c.id)
	}
}

// limits returns what whoever runs a realm's operator allows a namespace: t1 is trusted.
func (w *commons) limits(ns string) limits {
	l := limits{namespace: ns, adoption: decide.AdoptIfMarked, create: true, update: true, remove: true}
	if ns == "t1" || w.m.noLimits {
		l.adoption = decide.AdoptAlways
	}
	return l
}

func (w *commons) settingsOf(h *holder) settings {
	annotations := map[string]string{}
	for k, v := range map[string]string{"trimtab.dev/adoption": h.annotations.adoption, "trimtab.dev/deletion": h.annotations.deletion} {
		if v != "" {
			annotations[k] = v
		}
	}
	return readSettings(annotations, w.clock(), w.limits(h.ns))
}

// walk makes n events happen, and checks now and then that every stuck object has a way out.
func (w *commons) walk(n int) {
	for w.steps < n && w.broken == "" {
		for range 60 {
			w.now++
			w.event()
			r := pick(w.rng, w.realms...)
			if len(r.objects) > 0 {
				w.visit(pick(w.rng, r.objects...))
			}
			if w.broken != "" {
				return
			}
		}
		w.waysOut()
	}
}

func (w *commons) event() {
	r := pick(w.rng, w.realms...)
	switch w.rng.IntN(12) {
	case 0, 1, 2:
		w.create(r)
	case 3, 4:
		w.edit(r)
	case 5, 6:
		w.destroy(r)
	case 7:
		if w.chance(50) {
			r.tracks = map[string]*track{}
			r.process++
			w.log("%s restarts", r.id)
		}
	case 8:
		w.outsider(r)
	case 9:
		if w.chance(15) {
			r.tracks, r.endpoint = map[string]*track{}, pick(w.rng, "east", "west")
			w.log("%s restarts at %s", r.id, r.endpoint)
		}
	case 10:
		if w.chance(4) {
			w.fall(r)
		}
	}
}

// fall removes a cluster with all that is in it; another takes its place.
func (w *commons) fall(r *realm) {
	for _, h := range r.objects {
		h.gone = true
	}
	*r = *w.founded()
	w.log("a cluster falls; %s", r.id)
}

// create makes an object: a new one, a copy of any object of any cluster, or one from a backup.
func (w *commons) create(r *realm) {
	h := &holder{
		c: r, uid: "uid-" + w.next(), ns: pick(w.rng, "t0", "t1"), name: pick(w.rng, "a", "b", "c"), spec: pick(w.rng, "x", "y", "z"),
		want: w.rng.IntN(3), created: w.clock(), annotations: settingsOf{adoption: w.adoption()},
	}
	if from := w.seen(); from != nil && w.chance(50) {
		h.rec, h.spec, h.annotations = from.rec, from.spec, from.annotations
		if w.chance(60) {
			h.ns, h.name = from.ns, from.name
		}
	} else if w.chance(30) {
		h.rec = w.forged(r, h, w.someUID())
	}
	for _, o := range r.objects {
		if o.key() == h.key() {
			return
		}
	}
	r.objects = append(r.objects, h)
	w.log("%s: create %s uid %s for %q %+v record %s", r.id, h.key(), h.uid, h.spec, h.annotations, h.rec)
}

// seen returns an object that somebody can copy.
func (w *commons) seen() *holder {
	if len(w.backup) == 0 {
		return nil
	}
	return &w.backup[w.rng.IntN(len(w.backup))]
}

func (w *commons) adoption() string {
	if w.chance(50) {
		return ""
	}
	if w.chance(25) {
		return "from:" + w.someUID()
	}
	return pick(w.rng, "never", "if-identical", "always", "always")
}

// forged returns a record that a user might make up.
func (w *commons) forged(r *realm, h *holder, uid string) string {
	f := record.Record{
		ID: pick(w.rng, "x", "y", "z"), Incarnation: int64(1 + w.rng.IntN(3)), UID: uid, Create: record.Marker{At: w.clock(), By: "forger"},
		Adopted: pick(w.rng, "", record.AdoptedUnmarked, w.someUID()),
	}
	if t := w.things[r.endpoint][h.spec]; t != nil && w.chance(30) { // a user who knows the mark
		f.ID, f.Adopted = h.spec, record.AdoptedFrom(t.mark)
	}
	if w.chance(50) {
		f.Done = w.clock()
	}
	if w.chance(20) {
		f.Given = pick(w.rng, "x", "y", "z")
	}
	if w.chance(70) {
		f.Place = record.Place{Cluster: r.id, Installation: "op", Endpoint: r.endpoint, Object: h.key()}
	}
	value, err := f.Encode()
	if err != nil {
		w.fail(h, err.Error())
	}
	return value
}

// someUID returns a UID that users may have seen: in a mark, or anywhere.
func (w *commons) someUID() string {
	for _, endpoint := range []string{"east", "west"} {
		for _, id := range []string{"x", "y", "z"} {
			if t := w.things[endpoint][id]; t != nil && t.mark != nil && w.chance(30) {
				return t.mark[record.MarkUID]
			}
		}
	}
	return "uid-" + strconv.Itoa(1+w.rng.IntN(w.serial))
}

// edit changes an object as its users can.
func (w *commons) edit(r *realm) {
	if len(r.objects) == 0 {
		return
	}
	h := pick(w.rng, r.objects...)
	switch w.rng.IntN(8) {
	case 7:
		h.spec = pick(w.rng, "x", "y", "z")
	case 0, 1:
		h.want = w.rng.IntN(3)
	case 2, 3:
		h.annotations.adoption = w.adoption()
	case 4:
		h.annotations.deletion = pick(w.rng, "", "delete", "orphan")
	case 5:
		h.annotations.endpoint = pick(w.rng, "", "", "east", "west")
	case 6:
		if w.policy {
			return
		}
		w.disown(h)
		h.rec = w.forged(r, h, h.uid)
		if w.chance(20) {
			h.rec = ""
		}
		w.log("%s: %s has the record %s now", r.id, h.key(), h.rec)
	}
	w.log("%s: edit %s want %d %+v", r.id, h.key(), h.want, h.annotations)
}

// disown gives up, for an object whose own users overwrote its record, what only that record
// proved.
func (w *commons) disown(h *holder) {
	h.tampered = true
	for _, at := range w.things {
		for _, t := range at {
			if t.owner == h && t.mark[record.MarkUID] != h.uid {
				t.owner = nil
			}
		}
	}
}

// destroy deletes an object, normally or by force.
func (w *commons) destroy(r *realm) {
	if len(r.objects) == 0 {
		return
	}
	h := pick(w.rng, r.objects...)
	w.backup = append(w.backup, *h)
	if len(w.backup) > 12 {
		w.backup = w.backup[1:]
	}
	switch {
	case w.chance(30): // the backup alone
	case w.chance(15), !h.finalizer:
		w.remove(h)
		w.log("%s: %s is gone by force", r.id, h.key())
	default:
		h.deleting = true
		w.log("%s: delete %s", r.id, h.key())
	}
}

func (w *commons) remove(h *holder) {
	h.gone = true
	kept := h.c.objects[:0]
	for _, o := range h.c.objects {
		if o != h {
			kept = append(kept, o)
		}
	}
	h.c.objects = kept
}

// outsider creates or removes a resource that nobody owns.
func (w *commons) outsider(r *realm) {
	at, id := w.things[r.endpoint], pick(w.rng, "x", "y", "z")
	switch t := at[id]; {
	case t == nil && !w.wanted(id):
		at[id] = &deed{id: id, value: w.rng.IntN(3)}
	case t != nil && t.owner == nil && w.chance(50):
		delete(at, id)
	case t != nil && t.owner != nil && w.chance(10):
		delete(at, id)
		w.lost[r.endpoint+"/"+id] = t.owner
		w.log("%s of %s is lost", id, t.owner.key())
	}
}

// wanted reports whether a record of some object may name id, so that without marks nothing
// distinguishes what an outsider creates from what that object created.
func (w *commons) wanted(id string) bool {
	for _, r := range w.realms {
		for _, h := range r.objects {
			if strings.Contains(h.rec, `"id":"`+id+`"`) || w.k.unmarked && strings.Contains(h.rec, `"given":"`+id+`"`) {
				return true
			}
		}
	}
	return false
}

// waysOut checks that every stuck object has a way out: an object that is deleted with annotation
// deletion=orphan goes away, and one that is created under a name of its own gets its own
// resource.
func (w *commons) waysOut() {
	for _, r := range w.realms {
		for _, h := range append([]*holder(nil), r.objects...) {
			for range 8 {
				w.visit(h)
			}
			if w.broken != "" || h.gone || h.last.Action != decide.ActionStop && h.last.Reason == decide.ReasonAvailable {
				continue
			}
			w.stops[h.last.Reason]++
			if !w.chance(30) {
				continue
			}
			h.deleting, h.annotations.deletion = true, "orphan"
			for range 8 {
				w.visit(h)
			}
			if !h.gone && w.broken == "" {
				w.fail(h, "is stuck with "+string(h.last.Reason))
			}
		}
	}
	r := pick(w.rng, w.realms...)
	h := &holder{c: r, uid: "uid-" + w.next(), ns: "t0", name: "own-" + w.next(), spec: "own-" + w.next(), created: w.clock()}
	if from := w.seen(); from != nil && w.chance(50) { // a copy under another name
		h.rec = from.rec
	}
	r.objects = append(r.objects, h)
	for range 12 {
		w.visit(h)
	}
	if t := w.things[r.endpoint][h.spec]; w.broken == "" && (t == nil || t.owner != h) {
		w.fail(h, "has no thing of its own: "+string(h.last.Reason))
	}
	h.deleting = true
	for range 12 {
		w.visit(h)
	}
	if !h.gone {
		w.fail(h, "does not go")
	}
}
