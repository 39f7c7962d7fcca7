package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external/internal/applied"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
)

// completion are fields of the spec that the user left unset and that the API has chosen. The zero value has none.
type completion struct {
	// fields is a part of a spec.
	fields map[string]any
	// unknown is why they are not known, or cannot be written.
	unknown error
}

// lateInit finds out what the API has chosen where the spec says nothing. A field that was filled once is not filled again.
func (p *resource) lateInit() {
	p.completion = nil
	if p.e.driver.LateInit == nil || !p.settings.lateInit || p.facts.Did.Complete || p.track.uncompleted == p.obj.GetGeneration() {
		return
	}
	before, obj, have, driver := applied.SpecOf(p.obj), copyOf(p.obj), p.seen.Have, &p.e.driver
	after, err := pure(&p.e.abandoned, subjectOf(p.obj), "LateInit", func() (map[string]any, error) {
		driver.LateInit(obj, have)
		return applied.SpecOf(obj), nil
	})
	if err != nil {
		p.run.Log().Error(err, "LateInit did not come to its end; the spec is not completed")
		p.completion, p.hangs = &completion{unknown: err}, p.e.abandoned.stuck(p.uid())
		return
	}
	done := strings.FieldsFunc(p.obj.GetAnnotations()[api.AnnotationLateInitialized], isSeparator)
	fields, set := added("spec", before, after, done)
	p.completion = &completion{fields: fields}
	if set != "" {
		p.completion.unknown = fmt.Errorf("LateInit changed %s, which the user has set; this is a bug in %s", set, p.e.driver.Type)
	}
}

func isSeparator(r rune) bool { return r == ',' || r == ' ' }

// added returns what is adds to was, except at the paths in done, and the first path at which it changes what was set; empty
// if it does not. A list is one value, and null is unset.
func added(path string, was, is map[string]any, done []string) (fields map[string]any, set string) {
	for key, x := range was {
		if _, kept := is[key]; !kept && x != nil {
			return nil, path + "." + key
		}
	}
	for _, key := range slices.Sorted(maps.Keys(is)) {
		at, x, value := path+"."+key, was[key], is[key]
		before, _ := x.(map[string]any)
		after, nested := value.(map[string]any)
		switch {
		case x != nil && reflect.DeepEqual(x, value), value == nil && x == nil, strings.ContainsFunc(key, isSeparator):
			continue
		case nested && (x == nil || before != nil):
			inner, changed := added(at, before, after, done)
			if changed != "" {
				return nil, changed
			}
			if value = inner; len(inner) == 0 {
				continue
			}
		case x != nil:
			return nil, at
		case slices.Contains(done, at):
			continue
		}
		if fields == nil {
			fields = map[string]any{}
		}
		fields[key] = value
	}
	return fields, ""
}

// without removes what the user has set from fields, also if it is set to what Go takes for unset.
func without(fields, spec map[string]any) {
	for key, value := range fields {
		inner, nested := value.(map[string]any)
		there, deeper := spec[key].(map[string]any)
		switch {
		case spec[key] == nil:
		case nested && deeper:
			if without(inner, there); len(inner) == 0 {
				delete(fields, key)
			}
		default:
			delete(fields, key)
		}
	}
}

// pathsOf are the paths of the values in fields.
func pathsOf(path string, fields map[string]any) (paths []string) {
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if inner, nested := fields[key].(map[string]any); nested {
			paths = append(paths, pathsOf(path+"."+key, inner)...)
		} else {
			paths = append(paths, path+"."+key)
		}
	}
	return paths
}

// refusedForGood reports whether the API server will refuse the same write again.
func refusedForGood(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// confirmUnset removes from the completion what the object on the API server has.
func (p *resource) confirmUnset(ctx context.Context) error {
	kind, err := p.run.Client().GroupVersionKindFor(p.obj)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	if err := p.run.Live().Get(ctx, client.ObjectKeyFromObject(p.obj), u); err != nil {
		return fmt.Errorf("read what the spec leaves unset: %w", err)
	}
	if u.GetResourceVersion() != p.obj.GetResourceVersion() {
		return p.outdated(errors.New("the copy at hand is older than the object"))
	}
	spec, _, _ := unstructured.NestedMap(u.Object, "spec")
	without(p.completion.fields, spec)
	return nil
}

// complete writes what the API has chosen to the spec.
func (p *resource) complete(ctx context.Context) error {
	p.facts.Did.Complete = true
	if err := p.confirmUnset(ctx); err != nil {
		return err
	}
	paths := pathsOf("spec", p.completion.fields)
	if len(paths) == 0 { // all of it is set to what Go takes for unset
		p.track.uncompleted = p.obj.GetGeneration()
		return nil
	}
	filled := strings.Join(paths, ",")
	annotations := maps.Clone(p.obj.GetAnnotations())
	if before := annotations[api.AnnotationLateInitialized]; before != "" {
		filled = before + "," + filled
	}
	annotations[api.AnnotationLateInitialized] = filled
	before := p.obj.GetAnnotations()
	p.obj.SetAnnotations(annotations)
	if err := p.run.CompleteSpec(ctx, p.completion.fields); err != nil {
		p.obj.SetAnnotations(before)
		err = fmt.Errorf("complete %s: %w", strings.Join(paths, " and "), err)
		if !refusedForGood(err) {
			return err
		}
		p.completion, p.track.uncompleted = &completion{unknown: err}, p.obj.GetGeneration()
		return nil
	}
	now := p.run.Object()
	carryStatus(p.obj, now)
	p.use(now)
	p.copy = nil
	p.facts.Seen, p.facts.Generation = decide.Seen{}, p.obj.GetGeneration()
	shown, err := json.Marshal(p.completion.fields)
	if err == nil {
		p.event("Normal", "LateInitialized", fmt.Sprintf("completed the spec with what the API has chosen for %s: %s", p.what(), shown))
	}
	return nil
}
