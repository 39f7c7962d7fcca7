//go:build !race

package fidelity

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// transcript is what a server made of a sequence.
type transcript struct {
	steps  []step
	events []event
}

// step is a request's answer and the object it names as it is afterwards.
type step struct {
	answer answer
	after  answer
	// asked and answered are the seconds in which it was.
	asked, answered int64
}

// player plays one sequence on a lane.
type player struct {
	*lane

	kinds map[string]kind // that the sequence uses
	// known are the states of objects as last seen, first their first ones: what $uid, $rv and
	// $old stand for.
	known, first map[ref]object
	// shows is the last revision of each object that watches must show by the end.
	shows map[ref]int64
	// absent are the objects that a read has not found since they were last seen.
	absent   map[ref]bool
	collects bool
	began    int // events before the request
}

// play plays a sequence and leaves the lane empty. It is as fast as it can, or with a pace at
// this one.
func (l *lane) play(ctx context.Context, s sequence, at pace) (transcript, error) {
	p := &player{lane: l, kinds: map[string]kind{}, known: map[ref]object{}, first: map[ref]object{}, shows: map[ref]int64{}, absent: map[ref]bool{}, collects: s.collects()}
	all := map[string]kind{}
	for _, k := range kinds() {
		all[k.resource] = k
	}
	for _, o := range s.Ops {
		k, ok := all[o.Of]
		if !ok {
			return transcript{}, fmt.Errorf("the table of kinds has no %q", o.Of)
		}
		p.kinds[o.Of] = k
	}
	l.mu.Lock()
	l.events = nil
	l.mu.Unlock()
	var out transcript
	for i, o := range s.Ops {
		if err := at.wait(ctx, i); err != nil {
			return out, err
		}
		st, err := p.step(ctx, o)
		if err != nil {
			return out, fmt.Errorf("request %d, %s: %w", i, o, err)
		}
		out.steps = append(out.steps, st)
	}
	var err error
	out.events, err = p.end(ctx)
	return out, err
}

func (p *player) step(ctx context.Context, o op) (step, error) {
	k := p.kinds[o.Of]
	if p.collects && (o.Do == "delete" || o.Do == "deletecollection") {
		if err := p.barrier(ctx); err != nil {
			return step{}, err
		}
	}
	if o.Query["resourceVersion"] == "0" {
		if err := p.cached(ctx, k, o); err != nil {
			return step{}, err
		}
	}
	if r := (ref{k.resource, p.full(k, o.Name)}); o.writes() && o.Name != "" {
		if err := p.fresh(ctx, r); err != nil {
			return step{}, err
		}
	}
	p.mu.Lock()
	p.began = len(p.events)
	p.mu.Unlock()
	var s step
	var err error
	s.asked = time.Now().Unix()
	if s.answer, err = p.send(ctx, k, o); err != nil {
		return s, err
	}
	s.answered = time.Now().Unix()
	if !o.writes() {
		return s, nil
	}
	p.written(k, o, s.answer)
	if p.collects {
		if err := p.settle(ctx, k, o); err != nil {
			return s, err
		}
	}
	name := o.Name
	if name == "" {
		name = p.created(o)
	}
	if name == "" || s.answer.Code == 0 || s.answer.Code >= http.StatusBadRequest { // did it write nevertheless, watches show it
		return s, nil
	}
	var now object
	r := ref{k.resource, p.full(k, name)}
	switch s.after, now, err = p.get(ctx, k, r.name); s.after.Code {
	case http.StatusOK:
		p.remember(r, now)
	case http.StatusNotFound:
		p.absent[r] = true
	}
	return s, err
}

// written remembers what a server says that it wrote.
func (p *player) written(k kind, o op, a answer) {
	var now object
	if o.Query["dryRun"] != "" || o.Do == "deletecollection" || a.Code >= http.StatusMultipleChoices || json.Unmarshal(a.Body, &now) != nil {
		return
	}
	if now.Kind != "Status" && !(o.Do == "delete" && strings.Contains(string(o.Body), "dryRun")) {
		p.remember(ref{k.resource, now.Metadata.Name}, now)
	}
}

func (p *player) remember(r ref, now object) {
	p.known[r] = now
	p.shows[r] = now.rev()
	delete(p.absent, r)
	if _, ok := p.first[r]; !ok {
		p.first[r] = now
	}
}

// created is the name of what a create made or would have made.
func (p *player) created(o op) string {
	var obj object
	if o.Do != "create" || json.Unmarshal(o.Body, &obj) != nil {
		return ""
	}
	return strings.TrimPrefix(obj.Metadata.Name, "$ns-")
}

func (p *player) full(k kind, name string) string {
	if k.cluster && name != "" {
		return p.ns + "-" + name
	}
	return name
}

// get reads an object.
func (p *player) get(ctx context.Context, k kind, name string) (answer, object, error) {
	a, err := p.ask(ctx, http.MethodGet, p.path(k, "", name, ""), nil, "", nil)
	var now object
	if err == nil && a.Code == http.StatusOK {
		err = json.Unmarshal(a.Body, &now)
	}
	return a, now, err
}

// verbs are how requests are sent, by [op.Do].
func verbs(do string) (method, contentType, accept string) {
	const as = "application/json;g=meta.k8s.io;v=v1;as="
	switch do {
	case "create":
		return http.MethodPost, jsonType, jsonType
	case "update":
		return http.MethodPut, jsonType, jsonType
	case "json":
		return http.MethodPatch, "application/json-patch+json", jsonType
	case "merge":
		return http.MethodPatch, "application/merge-patch+json", jsonType
	case "strategic":
		return http.MethodPatch, "application/strategic-merge-patch+json", jsonType
	case "apply":
		return http.MethodPatch, "application/apply-patch+yaml", jsonType
	case "delete", "deletecollection":
		return http.MethodDelete, jsonType, jsonType
	case "get", "list", "pages":
		return http.MethodGet, "", jsonType
	case "table":
		return http.MethodGet, "", as + "Table"
	case "meta":
		return http.MethodGet, "", as + "PartialObjectMetadata"
	}
	return "", "", ""
}

func (p *player) send(ctx context.Context, k kind, o op) (answer, error) {
	method, contentType, accept := verbs(o.Do)
	if method == "" {
		return answer{}, fmt.Errorf("there is no verb %q", o.Do)
	}
	if o.Do == "meta" && o.Name == "" {
		accept += "List"
	}
	path := p.path(k, o.Version, p.full(k, o.Name), o.Sub)
	q := url.Values{}
	for key, v := range o.Query {
		q.Set(key, p.replace(v))
	}
	body := []byte(p.replace(string(o.Body)))
	if p.overlooked(body) {
		return answer{Body: []byte("left out")}, nil
	}
	if o.Onto {
		now, err := p.ask(ctx, http.MethodGet, path, nil, "", nil)
		if err != nil || now.Code != http.StatusOK {
			return now, err
		}
		if body, err = merge(now.Body, body); err != nil {
			return now, err
		}
	}
	if o.Do == "pages" {
		return p.pages(ctx, path, q)
	}
	if !o.Protobuf || accept != jsonType {
		return p.askFor(ctx, method, path, q, contentType, accept, body)
	}
	if contentType == jsonType && len(body) > 0 {
		body, contentType = toProtobuf(body)
	}
	return p.askFor(ctx, method, path, q, contentType, protobufType, body)
}

// pages lists one by one and returns all items.
func (p *player) pages(ctx context.Context, path string, q url.Values) (answer, error) {
	q.Set("limit", "1")
	items := []json.RawMessage{}
	for {
		a, err := p.ask(ctx, http.MethodGet, path, q, "", nil)
		if err != nil || a.Code != http.StatusOK {
			return a, err
		}
		var list struct {
			Items    []json.RawMessage `json:"items"`
			Metadata struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
		}
		if err := json.Unmarshal(a.Body, &list); err != nil {
			return a, err
		}
		items = append(items, list.Items...)
		if list.Metadata.Continue == "" {
			a.Body = encode(map[string]any{"items": items})
			return a, nil
		}
		q.Set("continue", list.Metadata.Continue)
		q.Del("resourceVersion")
	}
}

var symbol = regexp.MustCompile(`\$(ns\b|(uid|rv|old):([a-z]+)/([a-z0-9-]+))`)

// replace puts the present values in the place of symbols.
func (p *player) replace(text string) string {
	return symbol.ReplaceAllStringFunc(text, func(s string) string {
		m := symbol.FindStringSubmatch(s)
		r := ref{m[3], p.full(p.kinds[m[3]], m[4])}
		switch m[2] {
		case "uid":
			if now, ok := p.known[r]; ok {
				return now.Metadata.UID
			}
			return "99999999-0000-4000-8000-000000000000"
		case "rv":
			if now, ok := p.known[r]; ok {
				return now.Metadata.ResourceVersion
			}
			return "1"
		case "old":
			if then, ok := p.first[r]; ok {
				return then.Metadata.ResourceVersion
			}
			return "1"
		}
		return p.ns
	})
}

// merge applies a merge patch.
func merge(onto, patch []byte) ([]byte, error) {
	var a, b any
	if err := numbers(onto, &a); err != nil {
		return nil, err
	}
	if err := numbers(patch, &b); err != nil {
		return nil, err
	}
	return json.Marshal(merged(a, b))
}

func merged(onto, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	m, ok := onto.(map[string]any)
	if !ok {
		m = map[string]any{}
	}
	for key, v := range changes {
		if v == nil {
			delete(m, key)
			continue
		}
		m[key] = merged(m[key], v)
	}
	return m
}
