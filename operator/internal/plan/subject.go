package plan

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// read answers a read of the object of the pass; nil if a request is about something else.
func (g *guard) read(t target, r *http.Request) *http.Response {
	if r.URL.Query().Get("watch") != "" {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.path == "" || t.path != g.path {
		return nil
	}
	if g.subject == nil {
		return failed(r, http.StatusNotFound, metav1.StatusReasonNotFound, "it would be gone")
	}
	return respond(r, http.StatusOK, encode(g.subject))
}

func (g *guard) holds(t target) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.path != "" && t.path == g.path
}

// write does what a request asks for to the copy of the object of the pass.
func (g *guard) write(t target, r *http.Request, body []byte) (*http.Response, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.subject
	if before == nil {
		return failed(r, http.StatusNotFound, metav1.StatusReasonNotFound, "it would be gone"), nil
	}
	if r.Method == http.MethodDelete {
		g.log.add(stepOf(t, r, before, nil, nil, http.StatusOK))
		return respond(r, http.StatusOK, encode(before)), nil
	}
	wanted, err := changed(before, r, body)
	if err != nil {
		return failed(r, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, err.Error()), nil
	}
	after := runtime.DeepCopyJSON(before)
	if t.subresource == "" {
		status, has := after["status"]
		if after = wanted; has {
			after["status"] = status
		}
	} else if status, has := wanted[t.subresource]; has {
		after[t.subresource] = status
	}
	keepIdentity(before, after)
	g.subject = after
	s := stepOf(t, r, before, body, encode(after), http.StatusOK)
	s.own = true
	g.log.add(s)
	if gone(after) {
		g.subject = nil
	}
	return respond(r, http.StatusOK, encode(after)), nil
}

// gone reports whether an object ends: it is being deleted, and no finalizer is left.
func gone(o map[string]any) bool {
	m, _ := o["metadata"].(map[string]any)
	f, _ := m["finalizers"].([]any)
	return m["deletionTimestamp"] != nil && len(f) == 0
}

// keepIdentity keeps what no client can change.
func keepIdentity(before, after map[string]any) {
	b, _ := before["metadata"].(map[string]any)
	a, _ := after["metadata"].(map[string]any)
	for _, key := range []string{"uid", "name", "namespace", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields"} {
		if value, has := b[key]; has && a != nil {
			a[key] = value
		}
	}
}

// changed returns what an object becomes by a write.
func changed(o map[string]any, r *http.Request, body []byte) (map[string]any, error) {
	var text []byte
	var err error
	switch kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); {
	case r.Method == http.MethodPut:
		text = body
	case strings.HasPrefix(kind, "application/json-patch"):
		var p jsonpatch.Patch
		if p, err = jsonpatch.DecodePatch(body); err == nil {
			text, err = p.Apply(encode(o))
		}
	case strings.HasPrefix(kind, "application/apply-patch"):
		var config map[string]any
		if err = yaml.Unmarshal(body, &config); err == nil {
			return merged(o, config), nil
		}
	default:
		text, err = jsonpatch.MergePatch(encode(o), body)
	}
	if err != nil {
		return nil, err
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, err
	}
	return out, nil
}

// merged returns what an object becomes if config is applied. Lists of conditions are merged by type; other lists are
// replaced.
func merged(o, config map[string]any) map[string]any {
	out := map[string]any{}
	maps.Copy(out, o)
	for key, value := range config {
		switch value := value.(type) {
		case map[string]any:
			have, _ := out[key].(map[string]any)
			out[key] = merged(have, value)
		case []any:
			if have, ok := out[key].([]any); ok && key == "conditions" {
				out[key] = byType(have, value)
				continue
			}
			out[key] = value
		default:
			out[key] = value
		}
	}
	return out
}

func byType(have, want []any) []any {
	out := append([]any(nil), want...)
	named := map[any]bool{}
	for _, c := range want {
		if m, ok := c.(map[string]any); ok {
			named[m["type"]] = true
		}
	}
	for _, c := range have {
		if m, ok := c.(map[string]any); ok && !named[m["type"]] {
			out = append(out, c)
		}
	}
	return out
}

func encode(o map[string]any) []byte {
	text, _ := json.Marshal(o) // decoded from JSON
	return text
}

// decode returns an object; nil if data is none.
func decode(data []byte) map[string]any {
	var o map[string]any
	if json.Unmarshal(data, &o) != nil {
		if yaml.Unmarshal(data, &o) != nil {
			return nil
		}
	}
	return o
}

func nameOf(o map[string]any) string {
	m, _ := o["metadata"].(map[string]any)
	name, _ := m["name"].(string)
	return name
}
