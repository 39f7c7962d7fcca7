package component

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/trigger"
)

// kindOfReference returns the kind that a reference names, as Refers returns it.
func kindOfReference(kind string) schema.GroupVersionKind {
	return corev1.SchemeGroupVersion.WithKind(kind)
}

// referring finds the references in values of a type.
type referring struct {
	// types are those whose values may contain references.
	types map[reflect.Type]bool
	// kinds are those that references name, sorted.
	kinds []string
}

// referringTypes finds out which types reachable from t contain references.
func referringTypes(t reflect.Type) *referring {
	r := &referring{types: map[reflect.Type]bool{}}
	for again := true; again; { // a type may contain itself
		again = r.visit(t, map[reflect.Type]bool{})
	}
	slices.Sort(r.kinds)
	return r
}

// visit reports whether it found out something new.
func (r *referring) visit(t reflect.Type, seen map[reflect.Type]bool) (found bool) {
	if seen[t] {
		return false
	}
	seen[t] = true
	contains := false
	look := func(inner reflect.Type) {
		found = r.visit(inner, seen) || found
		contains = contains || r.types[inner]
	}
	if ref, ok := reflect.TypeAssert[api.Reference](reflect.New(t)); ok {
		contains = true
		if kind, _ := ref.Refers(); !slices.Contains(r.kinds, kind) {
			r.kinds = append(r.kinds, kind)
		}
	} else if t.Kind() == reflect.Struct {
		for field := range t.Fields() {
			if field.IsExported() {
				look(field.Type)
			}
		}
	} else if k := t.Kind(); k == reflect.Pointer || k == reflect.Slice || k == reflect.Array || k == reflect.Map {
		look(t.Elem())
	}
	if !contains || r.types[t] {
		return found
	}
	r.types[t] = true
	return true
}

// reference is a reference in a component.
type reference struct {
	api.Reference

	path string // where in the component it is
	kind string
	name string
	// kubeconfig: it is part of an [api.KubeConfigSpec].
	kubeconfig bool
}

// of returns the references in a component that name something, in the order of its fields. With load,
// references in maps are replaced by copies that can be loaded.
func (r *referring) of(obj client.Object, load bool) []reference {
	var found []reference
	if len(r.kinds) > 0 {
		r.walk(reflect.ValueOf(obj), "", load, &found)
	}
	return found
}

func (r *referring) walk(v reflect.Value, path string, load bool, found *[]reference) {
	if !v.IsValid() || !r.types[v.Type()] {
		return
	}
	if v.CanAddr() {
		if ref, ok := reflect.TypeAssert[api.Reference](v.Addr()); ok {
			if kind, name := ref.Refers(); name != "" {
				*found = append(*found, reference{Reference: ref, path: path, kind: kind, name: name})
			}
			return
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		r.walk(v.Elem(), path, load, found)
	case reflect.Struct:
		first := len(*found)
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				r.walk(v.Field(i), path+"."+field.Name, load, found)
			}
		}
		for i := first; i < len(*found) && v.Type() == reflect.TypeFor[api.KubeConfigSpec](); i++ {
			(*found)[i].kubeconfig = true
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			r.walk(v.Index(i), fmt.Sprintf("%s[%d]", path, i), load, found)
		}
	case reflect.Map:
		r.walkMap(v, path, load, found)
	default:
	}
}

// walkMap walks the values of a map, which have no address.
func (r *referring) walkMap(v reflect.Value, path string, load bool, found *[]reference) {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	for _, key := range keys {
		value := v.MapIndex(key)
		if value.Kind() != reflect.Pointer {
			addressable := reflect.New(value.Type())
			addressable.Elem().Set(value)
			value = addressable.Elem()
		}
		first := len(*found)
		if r.walk(value, fmt.Sprintf("%s[%v]", path, key), load, found); !load || value.Kind() == reflect.Pointer {
			continue
		}
		for i := first; i < len(*found); i++ { // put back once loaded
			(*found)[i].Reference = inMap{(*found)[i].Reference, func() { v.SetMapIndex(key, value) }}
		}
	}
}

// inMap is a reference in a copy of a map's value.
type inMap struct {
	api.Reference

	put func()
}

// Load implements [api.Reference].
func (m inMap) Load(content map[string][]byte) (string, error) {
	defer m.put()
	return m.Reference.Load(content)
}

// sources wake components when what they refer to changes.
func sourcesOf[T Object](r *referring) []trigger.Source[T] {
	var sources []trigger.Source[T]
	for _, kind := range r.kinds {
		sources = append(sources, trigger.Reference[T]{To: metadataOf(kind), Names: func(obj T) []types.NamespacedName {
			var names []types.NamespacedName
			for _, ref := range r.of(obj, false) {
				if ref.kind == kind {
					names = append(names, types.NamespacedName{Namespace: obj.GetNamespace(), Name: ref.name})
				}
			}
			return names
		}})
	}
	return sources
}

// needs are the permissions to read what is referred to. The sources need those to watch it.
func (r *referring) needs() []loop.Need {
	var needs []loop.Need
	for _, kind := range r.kinds {
		needs = append(needs, loop.Need{GroupVersionKind: kindOfReference(kind), Verbs: []string{"get"}})
	}
	return needs
}

// metadataOf is an empty object of a kind without its content: values of Secrets are never cached.
func metadataOf(kind string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(kindOfReference(kind))
	return m
}

// references resolves the references of components. It remembers digests, never values.
type references struct {
	*referring

	cache client.Reader // metadata

	mu    sync.Mutex
	known map[types.UID]map[string]resolved
}

// resolved is what is known of a reference.
type resolved struct{ object, version, digest string }

// resolving is the references of one component in one pass.
type resolving struct {
	*references

	obj  client.Object
	live client.Reader
	refs []reference
	// content has what was read in this pass.
	content map[string]content
	// digest identifies what all references of the component use. Missing says what does not exist.
	digest  string
	missing []string
}

type content struct {
	version string
	data    map[string][]byte
}

// resolve finds out what the references of a component come to. It reads only what changed.
func (r *references) resolve(ctx context.Context, obj client.Object, live client.Reader) (*resolving, error) {
	p := &resolving{references: r, obj: obj, live: live, refs: r.of(obj, true), content: map[string]content{}}
	if len(p.refs) == 0 {
		return p, nil
	}
	known := r.recall(obj.GetUID())
	now := map[string]resolved{}
	var parts []string
	for _, ref := range p.refs {
		state, missing, err := p.look(ctx, ref, known[ref.path])
		switch {
		case err != nil:
			return nil, err
		case missing != "":
			p.missing = append(p.missing, fmt.Sprintf("%s %s/%s: it %s", ref.kind, obj.GetNamespace(), ref.name, missing))
			continue
		}
		now[ref.path] = state
		parts = append(parts, ref.path, state.object, state.digest)
	}
	slices.Sort(p.missing)
	p.missing = slices.Compact(p.missing)
	p.digest = strings.Join(parts, "\n")
	r.remember(obj.GetUID(), now)
	return p, nil
}

// look returns the present state of a reference, or why there is none.
func (p *resolving) look(ctx context.Context, ref reference, known resolved) (state resolved, missing string, err error) {
	object := ref.kind + "/" + ref.name
	meta := metadataOf(ref.kind)
	err = p.cache.Get(ctx, client.ObjectKey{Namespace: p.obj.GetNamespace(), Name: ref.name}, meta)
	switch {
	case apierrors.IsNotFound(err):
		return resolved{}, doesNotExist, nil
	case err != nil:
		return resolved{}, "", fmt.Errorf("find %s %s/%s: %w", ref.kind, p.obj.GetNamespace(), ref.name, err)
	case known.object == object && known.version == meta.GetResourceVersion():
		return known, "", nil
	}
	return p.load(ctx, ref)
}

const doesNotExist = "does not exist"

// load reads what a reference names and hands it over.
func (p *resolving) load(ctx context.Context, ref reference) (state resolved, missing string, err error) {
	object := ref.kind + "/" + ref.name
	c, read := p.content[object]
	if !read {
		if c, err = p.read(ctx, ref); apierrors.IsNotFound(err) {
			return resolved{}, doesNotExist, nil
		} else if err != nil {
			return resolved{}, "", fmt.Errorf("read %s %s/%s: %w", ref.kind, p.obj.GetNamespace(), ref.name, err)
		}
		p.content[object] = c
	}
	digest, err := ref.Load(c.data)
	if err != nil {
		return resolved{}, err.Error(), nil //nolint:nilerr // a missing key is waited for
	}
	return resolved{object, c.version, digest}, "", nil
}

func (p *resolving) read(ctx context.Context, ref reference) (content, error) {
	key := client.ObjectKey{Namespace: p.obj.GetNamespace(), Name: ref.name}
	if ref.kind == "Secret" {
		s := &corev1.Secret{}
		err := p.live.Get(ctx, key, s)
		return content{s.ResourceVersion, s.Data}, err
	}
	m := &corev1.ConfigMap{}
	err := p.live.Get(ctx, key, m)
	c := content{m.ResourceVersion, map[string][]byte{}}
	for k, v := range m.Data {
		c.data[k] = []byte(v)
	}
	maps.Copy(c.data, m.BinaryData)
	return c, err
}

// loadAll hands the content of everything that is referred to over to the references in obj, which is the
// component or a copy of it.
func (p *resolving) loadAll(ctx context.Context, obj client.Object) error {
	for _, ref := range p.of(obj, true) {
		switch _, missing, err := p.load(ctx, ref); {
		case err != nil:
			return err
		case missing != "":
			return NewRetriableError(fmt.Errorf("%s %s/%s %s", ref.kind, p.obj.GetNamespace(), ref.name, missing), nil)
		}
	}
	return nil
}

func (r *references) recall(uid types.UID) map[string]resolved {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[uid]
}

// remember keeps what is known of the references of a component; nothing forgets it.
func (r *references) remember(uid types.UID, now map[string]resolved) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(now) == 0 {
		delete(r.known, uid)
		return
	}
	if r.known == nil {
		r.known = map[types.UID]map[string]resolved{}
	}
	r.known[uid] = now
}
