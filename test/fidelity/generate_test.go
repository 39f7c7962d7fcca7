//go:build !race

package fidelity

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

const (
	opsPerSequence = 25
	kindsAtOnce    = 3
	creates        = 20 // of 100 requests
)

// generator makes random sequences: few kinds and few names, so that requests meet.
type generator struct {
	*rand.Rand

	kinds  []kind
	owners bool // with references to owners, and every propagation

	generated bool // a name was left to the server
	// there are the objects that exist if all requests so far were accepted.
	there map[ref]bool
}

// generate returns the sequence of a seed.
func generate(seed uint64, owners bool) sequence {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0)), owners: owners, there: map[ref]bool{}}
	all := kinds()
	g.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	g.kinds = all[:kindsAtOnce]
	if g.one(2) {
		g.kinds[0] = customKinds()[g.IntN(len(customKinds()))]
	}
	s := sequence{Seed: seed}
	for range opsPerSequence {
		s.Ops = append(s.Ops, g.op())
	}
	return s
}

// one is true once in n times.
func (g *generator) one(n int) bool { return g.IntN(n) == 0 }

func pick[T any](g *generator, of ...T) T { return of[g.IntN(len(of))] }

// seldom returns the first once in four times.
func (g *generator) seldom(first, second string) string {
	if g.one(4) {
		return first
	}
	return second
}

func (g *generator) name() string { return fmt.Sprint("o", g.IntN(2)) }

func (g *generator) op() op {
	o := op{Query: map[string]string{}}
	n := g.IntN(100)
	// Most requests are for what exists, most creates for what does not.
	for range 4 {
		o.Of, o.Name = pick(g, g.kinds...).resource, g.name()
		if g.there[ref{o.Of, o.Name}] == (n >= creates) {
			break
		}
	}
	if !g.there[ref{o.Of, o.Name}] && n < 93 && !g.one(5) {
		n = pick(g, 0, 0, 70) // create it, or apply
	}
	k := g.kinds[slices.IndexFunc(g.kinds, func(k kind) bool { return k.resource == o.Of })]
	if len(k.versions) > 0 && g.one(4) {
		o.Version = pick(g, k.versions...)
	}
	if len(k.subs) > 0 && g.one(4) || g.one(80) {
		o.Sub = pick(g, append([]string{"status"}, k.subs...)...)
	}
	switch {
	case n < creates:
		g.create(k, &o)
	case n < 32:
		g.update(k, &o)
	case n < 45:
		o.Do, o.Body = "merge", encode(g.partial(k, o))
	case n < 54 && !(k.custom() && g.one(2)):
		o.Do, o.Body = "strategic", encode(g.partial(k, o))
	case n < 63:
		o.Do, o.Body = "json", g.jsonPatch(k)
	case n < 81:
		g.apply(k, &o)
	case n < 91:
		g.delete(&o)
	case n < 93:
		g.deleteCollection(k, &o)
	default:
		g.read(k, &o)
	}
	o.Protobuf = !k.custom() && g.one(6)
	if o.writes() && o.Do != "delete" && o.Do != "deletecollection" {
		g.writeOptions(&o)
	}
	return o
}

func (g *generator) writeOptions(o *op) {
	if _, ok := o.Query["fieldManager"]; !ok && g.one(2) {
		o.Query["fieldManager"] = pick(g, "a", "b")
	}
	if g.one(12) {
		o.Query["dryRun"] = pick(g, "All", "All", "All", g.seldom("Some", "All"))
	}
	if g.one(4) {
		o.Query["fieldValidation"] = pick(g, "Strict", "Strict", "Warn", "Warn", "Ignore", "Ignore", g.seldom("Odd", "Warn"))
	}
}

func (g *generator) create(k kind, o *op) {
	o.Do, o.Sub = "create", ""
	obj := g.full(k, *o)
	g.there[ref{o.Of, o.Name}] = true
	if !g.generated && g.one(15) {
		g.generated = true // once: lists are sorted by names, and these are random
		meta := obj["metadata"].(map[string]any)
		delete(meta, "name")
		meta["generateName"] = scoped(k, "g-")
	}
	o.Name = "" // a collection's URL
	if g.one(80) {
		obj["metadata"].(map[string]any)["resourceVersion"] = "1"
	}
	if g.one(40) {
		obj["metadata"].(map[string]any)["uid"] = "11111111-2222-4333-8444-555555555555"
	}
	o.Body = encode(obj)
}

// update replaces an object, mostly by what the server holds with some changes.
func (g *generator) update(k kind, o *op) {
	o.Do = "update"
	if o.Sub == "scale" {
		o.Onto, o.Body = true, encode(g.scale())
		return
	}
	if g.one(5) {
		obj := g.full(k, *o)
		g.resourceVersion(obj, *o)
		o.Body = encode(obj)
		return
	}
	o.Onto = true
	obj := g.partial(k, *o)
	if g.one(4) {
		g.resourceVersion(obj, *o)
	}
	o.Body = encode(obj)
}

func (g *generator) resourceVersion(obj map[string]any, o op) {
	of := o.Of + "/" + o.Name
	set(obj, "metadata.resourceVersion", pick(g, "", "$rv:"+of, "$rv:"+of, "$old:"+of, g.seldom("1", ""), g.seldom("x", "$rv:"+of)))
	if g.one(4) {
		set(obj, "metadata.uid", pick(g, "$uid:"+of, "$uid:"+of, "nobody"))
	}
}

func (g *generator) apply(k kind, o *op) {
	o.Do = "apply"
	g.there[ref{o.Of, o.Name}] = true
	if !g.one(60) {
		o.Query["fieldManager"] = pick(g, "a", "b")
	}
	if g.one(3) {
		o.Query["force"] = pick(g, "true", "true", "false")
	}
	obj := g.full(k, *o)
	if o.Sub == "scale" {
		obj = g.scale()
		obj["apiVersion"], obj["kind"] = "autoscaling/v1", "Scale"
	}
	if g.one(60) {
		obj["metadata"].(map[string]any)["managedFields"] = []any{}
	}
	if g.one(15) {
		g.resourceVersion(obj, *o)
	}
	o.Body = encode(obj)
}

func (g *generator) scale() map[string]any {
	return map[string]any{
		"metadata": map[string]any{}, "spec": map[string]any{"replicas": pick[any](g, 0, 1, 4, -1, "x")},
	}
}

// full is an object as somebody writes it who does not know the present one.
func (g *generator) full(k kind, o op) map[string]any {
	obj := decode(k.base)
	if g.one(25) {
		obj = map[string]any{}
	}
	g.change(k, obj)
	obj["apiVersion"], obj["kind"] = k.apiVersion(), k.kind
	if o.Version != "" {
		obj["apiVersion"] = k.group + "/" + o.Version
	}
	set(obj, "metadata.name", scoped(k, o.Name))
	switch g.IntN(120) {
	case 0:
		obj["kind"] = "Other"
	case 1:
		set(obj, "metadata.name", scoped(k, pick(g, "Bad_Name", "other", "")))
	case 2:
		set(obj, "metadata.namespace", "elsewhere")
	case 3:
		obj["apiVersion"] = pick(g, "v1", "fidelity.test/v9", "")
	case 4:
		delete(obj, "apiVersion")
	}
	return obj
}

// partial is a change to an object, as a merge patch writes it.
func (g *generator) partial(k kind, o op) map[string]any {
	obj := map[string]any{}
	if o.Sub == "scale" {
		return g.scale()
	}
	g.change(k, obj)
	if g.one(20) {
		g.resourceVersion(obj, o)
	}
	if g.one(60) {
		set(obj, "metadata.name", scoped(k, "other"))
	}
	return obj
}

// change sets some fields of an object.
func (g *generator) change(k kind, obj map[string]any) {
	for range g.IntN(4) {
		f := pick(g, k.fields...)
		set(obj, f.path, g.value(f))
	}
	if g.one(3) {
		set(obj, "metadata.labels", value(pick(g, `{"l":"0"}`, `{"l":"1"}`, `{"l":"1","m":"2"}`, `{"l":"2"}`, `{"l":null}`, g.seldom(`{"bad key":"x"}`, `{"n":"3"}`), "null")))
	}
	if g.one(6) {
		set(obj, "metadata.annotations", value(pick(g, `{"a":"1"}`, `{"b":"2"}`, `{"c":"3"}`, `{"a":null}`, g.seldom(`{"a":5}`, `{"a":"5"}`))))
	}
	if g.one(4) {
		set(obj, "metadata.finalizers", value(g.finalizers()))
	}
	if g.one(40) {
		set(obj, pick(g, "metadata.generation", "metadata.junk", "metadata.deletionTimestamp", "metadata.creationTimestamp", "metadata.deletionGracePeriodSeconds"), pick[any](g, 9, "2020-01-01T00:00:00Z", nil))
	}
	if g.owners && !k.cluster && g.one(2) {
		set(obj, "metadata.ownerReferences", g.references())
	}
}

func (g *generator) finalizers() string {
	if g.owners && g.one(4) {
		return pick(g, `["foregroundDeletion"]`, `["orphan"]`, `["orphan","f.test/a"]`)
	}
	return pick(g, `["f.test/a"]`, `["f.test/a","f.test/b"]`, `["f.test/b","f.test/a"]`, "[]", "null", "null", g.seldom(`["bad"]`, "[]"), g.seldom(`["f.test/a","f.test/a"]`, "[]"))
}

func (g *generator) references() any {
	refs := []any{}
	for range pick(g, 1, 1, 1, 2, 2, 0) {
		k := pick(g, g.kinds...)
		name := g.name()
		ref := map[string]any{
			"apiVersion": k.apiVersion(), "kind": k.kind, "name": scoped(k, name), "uid": "$uid:" + k.resource + "/" + name,
		}
		switch g.IntN(4) {
		case 0:
			ref["blockOwnerDeletion"] = true
		case 1:
			ref["blockOwnerDeletion"], ref["controller"] = true, true
		case 2:
			ref["controller"] = g.one(2)
		}
		switch g.IntN(30) {
		case 0:
			delete(ref, "uid")
		case 1:
			ref["uid"] = "11111111-2222-4333-8444-555555555555"
		}
		refs = append(refs, ref)
	}
	return refs
}

func (g *generator) jsonPatch(k kind) json.RawMessage {
	paths := []string{"metadata.labels", "metadata.labels.l", "metadata.finalizers", "metadata.finalizers.0", "metadata.finalizers.-", "metadata.resourceVersion", "nowhere.at.all"}
	var ops []any
	for range 1 + g.IntN(2) {
		f := pick(g, k.fields...)
		path, v := f.path, g.value(f)
		if g.one(3) {
			path = pick(g, paths...)
			v = pick[any](g, "f.test/c", []any{"f.test/a"}, map[string]any{"l": "1"}, "1")
		}
		change := map[string]any{"op": pick(g, "add", "add", "add", "add", "replace", "remove", g.seldom("test", "add"), g.seldom("copy", "add"), g.seldom("odd", "replace")), "path": "/" + strings.ReplaceAll(path, ".", "/")}
		switch change["op"] {
		case "remove":
		case "copy":
			change["from"] = "/metadata/labels"
		default:
			change["value"] = v
		}
		ops = append(ops, change)
	}
	return encode(ops)
}

func (g *generator) delete(o *op) {
	o.Do, o.Sub = "delete", ""
	g.there[ref{o.Of, o.Name}] = false
	if g.one(3) {
		return
	}
	opts := map[string]any{"kind": "DeleteOptions", "apiVersion": "v1"}
	of := o.Of + "/" + o.Name
	if g.one(5) {
		set(opts, "preconditions.uid", pick(g, "$uid:"+of, "$uid:"+of, "nobody"))
	}
	if g.one(5) {
		set(opts, "preconditions.resourceVersion", pick(g, "$rv:"+of, "$rv:"+of, "$old:"+of, "1"))
	}
	if g.one(8) {
		opts["gracePeriodSeconds"] = pick(g, 0, 0, 30, -1)
	}
	if g.one(10) {
		opts["dryRun"] = []any{"All"}
	}
	if g.owners && !g.one(3) {
		opts["propagationPolicy"] = pick(g, "Background", "Foreground", "Foreground", "Foreground", "Orphan", "Orphan", g.seldom("Odd", "Orphan"))
		if g.one(20) {
			opts["orphanDependents"] = g.one(2)
		}
	}
	o.Body = encode(opts)
}

func (g *generator) deleteCollection(k kind, o *op) {
	if k.cluster { // not those of other sequences
		o.Query["fieldSelector"] = "metadata.name=" + scoped(k, o.Name)
	}
	o.Do, o.Name, o.Sub = "deletecollection", "", ""
	o.Query["labelSelector"] = pick(g, "l=1", "l", "l notin (0,1),l")
}

func (g *generator) read(k kind, o *op) {
	o.Do = pick(g, "get", "list", "pages", "table", "meta")
	switch o.Do {
	case "get":
		return
	case "table", "meta":
		o.Sub = ""
		if g.one(2) {
			return
		}
		fallthrough
	default:
		o.Name, o.Sub = "", ""
	}
	if g.one(2) {
		o.Query["labelSelector"] = pick(g, "l", "l=1", "l!=1", "!l", g.seldom("l in (0", "l"), "l in (0,1)")
	}
	switch {
	case g.one(4):
		o.Query["fieldSelector"] = "metadata.name=" + scoped(k, g.name())
	case g.one(6):
		o.Query["fieldSelector"] = pick(g, "spec.color=red", "type=Opaque", "spec.size=5", "metadata.name!=x")
	}
	if g.one(10) {
		o.Query["resourceVersion"] = pick(g, "0", "x")
	}
}

// scoped is a name as the server sees it: those of cluster-scoped objects begin with the
// sequence's namespace, so that sequences that run at once do not meet.
func scoped(k kind, name string) string {
	if k.cluster {
		return "$ns-" + name
	}
	return name
}

// value chooses one of a field's values.
func (g *generator) value(f field) any {
	for seldom := g.one(12); ; {
		text := pick(g, f.values...)
		text, bad := strings.CutPrefix(text, "!")
		if bad == seldom || g.one(8) { // some fields have one sort alone
			return value(text)
		}
	}
}

// set puts v at a path of names, making objects on the way.
func set(obj map[string]any, path string, v any) {
	names := strings.Split(path, ".")
	for _, n := range names[:len(names)-1] {
		next, ok := obj[n].(map[string]any)
		if !ok {
			next = map[string]any{}
			obj[n] = next
		}
		obj = next
	}
	obj[names[len(names)-1]] = v
}

func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // the generator makes only what JSON knows
	}
	return b
}

func decode(s string) map[string]any { return value(s).(map[string]any) }

// value is JSON text, its numbers kept as they are written.
func value(s string) any {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		panic(fmt.Sprintf("%s in the table of kinds: %v", s, err))
	}
	return v
}
