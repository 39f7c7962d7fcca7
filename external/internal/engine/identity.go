package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/external/internal/record"
	"github.com/trimtab-dev/trimtab/internal/guard"
	"github.com/trimtab-dev/trimtab/internal/plain"
)

// identity is which external resource belongs to the object: what the durable record and the spec say
// about its name and its place.
type identity struct {
	access

	// place is the place of the operator and the object. Its endpoint is empty until there is a
	// client.
	place record.Place
	// record is the durable record; inherited is that of another object, copied or restored.
	record    record.Record
	inherited *record.Record // nil if there is none
	trouble   error          // why the record or the name cannot be used
	id        string
	named     string // the name that the spec yields now
	// startsOver reports whether the record describes a resource at another endpoint that a user said to
	// leave there.
	startsOver bool
}

// place returns the place of the operator and the object, without the endpoint.
func (e *Engine) place(ctx context.Context, r Run) (record.Place, error) {
	uid, err := e.cluster.Get(ctx, r.Live())
	if err != nil {
		return record.Place{}, err
	}
	return record.Place{Cluster: uid, Installation: r.Terms().Installation, Object: client.ObjectKeyFromObject(r.Object()).String()}, nil
}

// readRecord reads the annotation and determines the resource's identity: the recorded one, or
// else the name that the spec yields. If the driver panics when asked for the name, the pass fails
// and is retried; only a deletion can do without the name.
func (p *identity) readRecord() error {
	r, err := p.track.parse(p.obj.GetAnnotations()[api.AnnotationExternal])
	if err != nil {
		p.facts.Record.Trouble, p.trouble = decide.TroubleCorrupt, err
		return nil //nolint:nilerr // it is a fact for the decision
	}
	if r.Exists() && r.UID != string(p.obj.GetUID()) {
		if r.Stays("", p.place) { // otherwise it is a copy
			p.inherited = new(r)
		}
		r = record.Record{}
	}
	p.record = r
	if p.hangs != nil { // the driver cannot even be asked for the name
		p.named = r.ID
	} else if p.named, err = p.e.name(subjectOf(p.obj), p.lend); isUnreturned(err) {
		p.named, p.hangs = r.ID, err
	} else if err != nil {
		crash, _ := errors.AsType[*guard.PanicError](err)
		p.logPanic(crash)
		if unasked(err) && p.obj.GetDeletionTimestamp().IsZero() {
			return err
		}
		p.facts.Record.Trouble, p.trouble = decide.TroubleName, err
	}
	p.identify()
	return nil
}

// identify determines the identity by which to observe.
func (p *identity) identify() {
	switch {
	case p.record.Given != "":
		p.id = p.record.Given
	case p.record.ID != "" && !p.e.options.AssignedIDs:
		p.id = p.record.ID
	case !p.record.Exists() && p.inherited != nil && p.inherited.Given != "":
		p.id = p.inherited.Given
	case p.e.options.AssignedIDs:
		p.id = ""
	case p.inherited != nil && p.inherited.ID != "":
		p.id = p.inherited.ID
	default:
		p.id = p.named
	}
}

// gatherRecord gathers the facts about the record and the name.
func (p *identity) gatherRecord() {
	f := &p.facts
	f.Record.Incarnation, f.Record.Marker = p.record.Incarnation, p.record.Progress()
	f.Record.KnownID = p.id != ""
	f.Record.Expired, f.Record.Doubtful = p.record.Create.Expired(time.Now(), record.MarkerLife), p.e.observesFirst() && (p.record.Doubt || p.track.doubtful)
	if p.e.options.Unmarked && f.Deleting && !p.record.Exists() {
		f.Record.KnownID = false // without a record no create was called
	}
	f.Identity = p.e.identity()
	if !p.e.options.AssignedIDs && (p.record.Given != "" || p.inherited != nil && p.inherited.Given != "") {
		f.Record.Trouble = decide.TroubleGiven
		return
	}
	if f.Record.Trouble == decide.TroubleCorrupt || f.Record.Trouble == decide.TroubleName {
		return
	}
	f.Record.Trouble = decide.TroubleNone
	if p.gatherEndpoint() && p.record.Exists() && p.record.ID != p.named && !p.e.options.AssignedIDs {
		p.rename()
	}
}

// chosen is the identity that a resource gets which is created now; empty if the API assigns it.
func (p *identity) chosen() string {
	if p.e.options.AssignedIDs {
		return ""
	}
	return p.named
}

// identity returns how a resource is found again if the answer to its create was lost.
func (e *Engine) identity() decide.Identity {
	switch o := &e.options; {
	case !o.AssignedIDs:
		return decide.IdentityDeterministic
	case o.Tokens:
		return decide.IdentityToken
	case e.driver.Find != nil && !o.Unmarked && !o.MarkLater:
		return decide.IdentityMark
	default:
		return decide.IdentityNone
	}
}

// token identifies a creation of an object's resource to the API.
func (p *identity) token() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %d", p.place.Cluster, p.obj.GetUID(), p.incarnation()))
	return hex.EncodeToString(sum[:16])
}

// gatherEndpoint reports whether the recorded resource is at the endpoint that the client talks
// to. One that was created elsewhere stays there until a user says to start over here. An endpoint
// that was not known when the record was written is pinned before the first create.
func (p *identity) gatherEndpoint() bool {
	f := &p.facts
	pinned, here := p.record.Endpoint, p.place.Endpoint
	p.startsOver = here != "" && pinned != "" && pinned != here && p.obj.GetAnnotations()[api.AnnotationEndpoint] == here
	missing := f.Seen.Observed && f.Seen.Phase == decide.PhaseMissing && f.Creation <= decide.CreationPossible && p.record.ID == p.named
	unpinned := here != "" && pinned == "" && p.record.Exists() && (f.Creation == decide.CreationNone || missing)
	switch {
	case p.startsOver:
		f.Creation, f.DeleteAccepted, f.Record.KnownID = decide.CreationNone, false, !f.Deleting
	case unpinned:
		f.Record.Incarnation--
	case here != "" && pinned != "" && pinned != here:
		f.Record.Trouble = decide.TroubleEndpoint
		return false
	default:
		return true
	}
	f.Record.Marker = record.MarkerNone
	if p.id != p.chosen() {
		p.id, f.Seen = p.chosen(), decide.Seen{}
	}
	return false
}

// rename determines what a new name in the spec means. A resource keeps the name it was created
// with; if certainly nothing was created yet, the new name is used.
func (p *identity) rename() {
	f := &p.facts
	switch f.Creation {
	case decide.CreationUnrecorded: // observed by the old name first
	case decide.CreationRefused:
		if p.id == p.named || f.Seen.Observed && !f.Seen.Ours() {
			p.takeName()
		}
	case decide.CreationNone:
		p.takeName()
	case decide.CreationPossible, decide.CreationSettled, decide.CreationCalled, decide.CreationSeen:
		f.Record.Trouble = decide.TroubleRenamed
	}
}

// takeName goes on with the name that the spec yields now.
func (p *identity) takeName() {
	f := &p.facts
	f.Record.Marker = record.MarkerNone
	f.Record.Incarnation--
	if p.id != p.named {
		p.id, f.Seen = p.named, decide.Seen{}
	}
}

// incarnation returns the number of creations for the object, from 1, including one that is about
// to happen.
func (p *identity) incarnation() int64 { return max(1, p.record.Incarnation) }

func (p *identity) claimant() decide.Claimant {
	c := decide.Claimant{
		Mark: p.mark(), Record: p.record, Unmarked: p.e.options.Unmarked, Late: p.e.options.MarkLater,
		Untried: p.track.creation <= decide.CreationRefused, Adoption: p.settings.policy.Adoption, From: p.settings.from,
	}
	if p.inherited != nil {
		c.Inherited = *p.inherited
	}
	if p.startsOver {
		c.Record = record.Record{}
	}
	return c
}

func (p *identity) mark() record.Mark { return p.markOf(p.obj, p.record.Incarnation) }

func (p *identity) markOf(obj Object, incarnation int64) record.Mark {
	gvk, err := p.run.Client().GroupVersionKindFor(obj)
	if err != nil {
		gvk.Kind = p.e.kind
	}
	return record.MarkFor(obj, gvk, p.place.Cluster, max(1, incarnation))
}

// what names the resource for users.
func (p *identity) what() string {
	name := cmp.Or(p.id, p.named)
	if name == "" {
		return "the " + p.e.noun
	}
	return fmt.Sprintf("%s %q", p.e.noun, plain.Text(name))
}
