package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
)

// completion are fields of the spec that the user left unset and that the API has chosen. The zero value has none.
type completion struct {
	// fields is a part of a spec, paths the paths in it.
	fields map[string]any
	paths  []string
	// unknown is why they are not known.
	unknown error
}

// lateInit finds out what the API has chosen where the spec says nothing. A field that was filled once is not filled again.
func (p *resource) lateInit() {
	p.completion = nil
	if p.e.driver.LateInit == nil || !p.settings.lateInit || p.facts.Did.Complete {
		return
	}
	before, obj, have, driver := fieldsOf(p.obj), copyOf(p.obj), p.seen.Have, &p.e.driver
	after, err := pure(&p.e.abandoned, subjectOf(p.obj), "LateInit", func() (map[string]any, error) {
		driver.LateInit(obj, have)
		return fieldsOf(obj), nil
	})
	if err != nil {
		p.run.Log().Error(err, "LateInit did not come to its end; the spec is not completed")
		p.completion, p.hangs = &completion{unknown: err}, p.e.abandoned.stuck(p.uid())
		return
	}
	c, set := completed(before, after, strings.Split(p.obj.GetAnnotations()[api.AnnotationLateInitialized], ","))
	if set != "" {
		c = completion{unknown: fmt.Errorf("LateInit changed %s, which the user has set; this is a bug in %s", set, p.e.driver.Type)}
	}
	p.completion = &c
}

// fieldsOf returns the fields of a spec that are set. Numbers keep all their digits.
func fieldsOf(obj Object) map[string]any {
	var fields struct {
		Spec map[string]any `json:"spec"`
	}
	if data, err := json.Marshal(obj); err == nil {
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		_ = d.Decode(&fields) // it was written a moment ago
	}
	return fields.Spec
}

// completed returns what after adds to before, except at the paths in done, and the first path at which it changes what was
// set; empty if it does not.
func completed(before, after map[string]any, done []string) (c completion, set string) {
	c.fields, set = c.added("spec", before, after, done)
	return c, set
}

// added returns what is adds to was.
func (c *completion) added(path string, was, is map[string]any, done []string) (fields map[string]any, set string) {
	for key := range was {
		if _, kept := is[key]; !kept {
			return nil, path + "." + key
		}
	}
	for _, key := range slices.Sorted(maps.Keys(is)) {
		at := path + "." + key
		x, had := was[key]
		value := is[key]
		before, nested := x.(map[string]any)
		after, stays := value.(map[string]any)
		switch {
		case had && nested && stays:
			inner, changed := c.added(at, before, after, done)
			if changed != "" {
				return nil, changed
			}
			if value = inner; len(inner) == 0 {
				continue
			}
		case had && reflect.DeepEqual(x, value), !had && slices.Contains(done, at):
			continue
		case had:
			return nil, at
		default:
			c.paths = append(c.paths, at)
		}
		if fields == nil {
			fields = map[string]any{}
		}
		fields[key] = value
	}
	return fields, ""
}

// complete writes what the API has chosen to the spec.
func (p *resource) complete(ctx context.Context) error {
	p.facts.Did.Complete = true
	filled := strings.Join(p.completion.paths, ",")
	annotations := maps.Clone(p.obj.GetAnnotations())
	if before := annotations[api.AnnotationLateInitialized]; before != "" {
		filled = before + "," + filled
	}
	annotations[api.AnnotationLateInitialized] = filled
	before := p.obj.GetAnnotations()
	p.obj.SetAnnotations(annotations)
	if err := p.run.CompleteSpec(ctx, p.completion.fields); err != nil {
		p.obj.SetAnnotations(before)
		return fmt.Errorf("complete %s: %w", strings.Join(p.completion.paths, " and "), err)
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
