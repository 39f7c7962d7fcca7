//go:build !race

package fidelity

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The real garbage collector works by itself and at any time. What it will have done at the
// end is certain, if it knows of each object before the next one is deleted: [player.settle]
// waits until it has no more to do, and [player.barrier] until it has seen all.

const sentinelPrefix = "zz-"

func (l *lane) sentinel(r ref) bool {
	return strings.HasPrefix(strings.TrimPrefix(r.name, l.ns+"-"), sentinelPrefix)
}

// settle waits until the watches show what a request did, and then until garbage collection
// has nothing to do.
func (p *player) settle(ctx context.Context, k kind, o op) error {
	if p.collect != nil {
		if err := p.collect(ctx); err != nil {
			return err
		}
	}
	switch {
	case o.Do == "deletecollection":
		for _, k := range p.kinds {
			if err := p.caughtUp(ctx, k); err != nil {
				return err
			}
		}
	case o.Name != "": // to take away the last finalizer ends an object too
		if err := p.shown(ctx, k, p.full(k, o.Name)); err != nil {
			return err
		}
	}
	if err := p.quiet(ctx); err != nil || p.collect != nil || !p.orphans() {
		return err
	}
	// The real one may delete such an object once more and put "orphan" back. What it has in
	// hand it does before the probe, which has a longer way.
	if err := p.barrier(ctx); err != nil {
		return err
	}
	if err := p.quiet(ctx); err != nil {
		return err
	}
	p.forgetRepeated(o)
	return nil
}

// orphans reports whether this request made the garbage collector delete an object that lets
// its dependents go.
func (p *player) orphans() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.events[p.began:], func(e event) bool {
		return e.now.orphans() && len(e.now.Metadata.OwnerReferences) > 0
	})
}

// forgetRepeated leaves out what the real garbage collector does twice: take "orphan" from an
// object that is being deleted, delete it by a view that is behind, which puts "orphan" back,
// and take it again. Of requests only deletions can, and what those are for stays: such an
// object gets no new finalizers otherwise. The first taking is left out, and the putting back.
func (p *player) forgetRepeated(o op) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := p.began; i < len(p.events); i++ {
		before := i - 1
		for before >= 0 && p.events[before].ref != p.events[i].ref {
			before--
		}
		deleted := strings.HasPrefix(o.Do, "delete") && p.events[i].ref.resource == o.Of
		if before < p.began || deleted || !p.events[i].now.orphans() || p.events[before].now.Metadata.DeletionTimestamp == "" || p.events[before].now.orphans() {
			continue
		}
		p.events = slices.Delete(p.events, i, i+1)
		p.events = slices.Delete(p.events, before, before+1)
		i = p.began - 1
	}
}

// quiet waits until the watches show what was written and what garbage collection makes of it.
func (p *player) quiet(ctx context.Context) error {
	return p.await(ctx, patience, "the garbage collector to be done", func() bool {
		for r, rev := range p.shows {
			if p.live[r].rev() < rev && p.ended[r] < rev {
				return false
			}
		}
		return settled(p.live)
	})
}

// shown waits until the watches show an object's present state.
func (p *player) shown(ctx context.Context, k kind, name string) error {
	a, now, err := p.get(ctx, k, name)
	if err != nil {
		return err
	}
	r := ref{k.resource, name}
	return p.await(ctx, patience, "the watch to show "+r.String(), func() bool {
		seen, ok := p.live[r]
		if a.Code != http.StatusOK {
			return !ok
		}
		return ok && seen.rev() >= now.rev() || p.ended[r] > now.rev()
	})
}

// fresh waits until the watches show what is known of an object. A server applies a change first to what its cache
// has, and only if that is old to what is stored: until then, its answer can have warnings about the old object.
func (p *player) fresh(ctx context.Context, r ref) error {
	return p.await(ctx, patience, "the watch to show "+r.String(), func() bool {
		seen, ok := p.live[r]
		if p.absent[r] {
			return !ok
		}
		return seen.rev() >= p.shows[r] || p.ended[r] >= p.shows[r]
	})
}

// cached waits until the cache from which a server may answer a request shows what is stored:
// watches are told after it. Each version of a custom kind has its own.
func (p *player) cached(ctx context.Context, k kind, o op) error {
	if err := p.caughtUp(ctx, k); err != nil || o.Version == "" {
		return err
	}
	var last int64
	p.mu.Lock()
	for r, seen := range p.live {
		if r.resource == k.resource {
			last = max(last, seen.rev())
		}
	}
	for r, rev := range p.ended {
		if r.resource == k.resource {
			last = max(last, rev)
		}
	}
	p.mu.Unlock()
	q := url.Values{"resourceVersion": {strconv.FormatInt(last, 10)}} // not older
	a, err := p.ask(ctx, http.MethodGet, p.path(k, o.Version, "", ""), q, "", nil)
	if err == nil && a.Code != http.StatusOK {
		err = fmt.Errorf("%s: list %s as of %d: %d %s", p.name, k.resource, last, a.Code, a.Body)
	}
	return err
}

// caughtUp waits until the watch of a kind shows what a list shows.
func (p *player) caughtUp(ctx context.Context, k kind) error {
	a, err := p.ask(ctx, http.MethodGet, p.path(k, "", "", ""), nil, "", nil)
	if err != nil {
		return err
	}
	var list struct {
		Metadata metadata `json:"metadata"`
		Items    []object `json:"items"`
	}
	if err := json.Unmarshal(a.Body, &list); err != nil {
		return fmt.Errorf("%s: %w", a.Body, err)
	}
	at := object{Metadata: list.Metadata}.rev()
	return p.await(ctx, patience, "the watch of "+k.resource+" to show what a list shows", func() bool {
		there := map[string]bool{}
		for _, o := range list.Items {
			r := ref{k.resource, o.Metadata.Name}
			there[r.name] = true
			seen, ok := p.live[r]
			if p.ours(k, r.name) && !(ok && seen.rev() >= o.rev() || p.ended[r] > o.rev()) {
				return false
			}
		}
		for r, rev := range p.shows {
			if r.resource == k.resource && !there[r.name] && p.ended[r] < rev {
				return false
			}
		}
		for r, o := range p.live {
			if r.resource == k.resource && !there[r.name] && o.rev() <= at {
				return false
			}
		}
		return true
	})
}

// settled reports whether the garbage collector has nothing to do: each owner that an object
// names exists and does not wait for the object's end, and what waits for its dependents has some.
func settled(live map[ref]object) bool {
	byUID := map[string]object{}
	blocked := map[string]bool{}
	for _, o := range live {
		byUID[o.Metadata.UID] = o
		for _, owner := range o.Metadata.OwnerReferences {
			if owner.BlockOwnerDeletion {
				blocked[owner.UID] = true
			}
		}
	}
	for _, o := range live {
		m := o.Metadata
		switch {
		case o.orphans():
			return false
		case o.waits() && !blocked[m.UID]:
			return false
		case m.DeletionTimestamp != "":
			continue
		}
		for _, ref := range m.OwnerReferences {
			if owner, ok := byUID[ref.UID]; !ok || owner.waits() {
				return false
			}
		}
	}
	return true
}

// waits reports whether an object is kept until its dependents are gone.
func (o object) waits() bool {
	return o.Metadata.DeletionTimestamp != "" && slices.Contains(o.Metadata.Finalizers, "foregroundDeletion")
}

// orphans reports whether an object is kept until its dependents are free.
func (o object) orphans() bool {
	return o.Metadata.DeletionTimestamp != "" && slices.Contains(o.Metadata.Finalizers, "orphan")
}

// overlooked reports whether a request gives an object an owner that waits for its dependents
// already. The real collector looks at dependents when the owner begins to wait; it notices a
// later one only if something else happens to either of them, maybe never. The simulated one
// always does.
func (p *player) overlooked(body []byte) bool {
	if !p.collects || !bytes.Contains(body, []byte("ownerReferences")) {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range p.live {
		if o.waits() && bytes.Contains(body, []byte(o.Metadata.UID)) {
			return true
		}
	}
	return false
}

// barrier waits until the garbage collector knows all objects that have owners: it takes
// changes of a kind in order, so it does once it has collected a later one.
func (p *player) barrier(ctx context.Context) error {
	if p.collect != nil {
		return nil
	}
	p.mu.Lock()
	owned := map[string]bool{}
	for r, o := range p.live {
		if len(o.Metadata.OwnerReferences) > 0 {
			owned[r.resource] = true
		}
	}
	p.mu.Unlock()
	for resource := range owned {
		if err := p.probe(ctx, p.kinds[resource], patience); err != nil {
			return err
		}
	}
	return nil
}

// ready waits until the garbage collector knows the custom kinds: it looks for new ones
// twice a minute.
func (l *lane) ready(ctx context.Context) error {
	if l.collect != nil {
		return nil
	}
	for _, k := range customKinds() {
		if err := l.probe(ctx, k, 5*patience); err != nil {
			return err
		}
	}
	return nil
}

// probe makes an object whose owner does not exist, and waits for its end.
func (l *lane) probe(ctx context.Context, k kind, patience time.Duration) error {
	l.probes++
	obj := decode(k.base)
	name := fmt.Sprint(sentinelPrefix, l.probes)
	if k.cluster {
		name = l.ns + "-" + name
	}
	obj["apiVersion"], obj["kind"] = k.apiVersion(), k.kind
	obj["metadata"] = map[string]any{"name": name, "ownerReferences": []any{map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "99999999-0000-4000-8000-000000000000",
	}}}
	if k.cluster {
		set(obj, "metadata.ownerReferences", []any{map[string]any{
			"apiVersion": customGroup + "/v1", "kind": "Zone", "name": "none", "uid": "99999999-0000-4000-8000-000000000000",
		}})
	}
	a, err := l.ask(ctx, http.MethodPost, l.path(k, "", "", ""), nil, jsonType, encode(obj))
	if err != nil || a.Code != http.StatusCreated {
		return fmt.Errorf("%s: make an object without owner: %w %s", l.name, err, a.Body)
	}
	return l.await(ctx, patience, "the garbage collector to have seen all "+k.resource, func() bool {
		return l.ended[ref{k.resource, name}] > 0
	})
}

// end waits for the last events, takes those that belong to the sequence, and removes what is left.
func (p *player) end(ctx context.Context) ([]event, error) {
	for _, k := range p.kinds {
		if err := p.caughtUp(ctx, k); err != nil {
			return nil, err
		}
	}
	p.mu.Lock()
	events := slices.Clone(p.events)
	left := maps.Clone(p.live)
	p.mu.Unlock()
	free := []byte(`{"metadata":{"finalizers":null,"ownerReferences":null}}`)
	for r := range left {
		k := p.kinds[r.resource]
		if _, err := p.ask(ctx, http.MethodPatch, p.path(k, "", r.name, ""), nil, "application/merge-patch+json", free); err != nil {
			return nil, err
		}
	}
	for r := range left {
		k := p.kinds[r.resource]
		if _, err := p.ask(ctx, http.MethodDelete, p.path(k, "", r.name, ""), nil, jsonType, nil); err != nil {
			return nil, err
		}
	}
	return events, p.await(ctx, patience, "the namespace to be empty", func() bool { return len(p.live) == 0 })
}
