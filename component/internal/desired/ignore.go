package desired

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/trimtab-dev/trimtab/internal/fingerprint"
)

// withhold takes the fields out of the manifest that are left to others: those of the annotation ignore,
// those that controllers own by design, and those of ignore-after-creation, which a new object gets
// nevertheless.
func (d *draft) withhold() {
	d.yield()
	for _, path := range d.Ignored {
		fingerprint.Remove(d.Manifest.Object, path)
	}
	if len(d.initial) == 0 {
		return
	}
	d.Initial = d.Manifest.DeepCopy()
	for _, path := range d.initial {
		fingerprint.Remove(d.Manifest.Object, path)
	}
	d.Ignored = append(d.Ignored, d.initial...)
}

// fields returns the paths that an annotation lists.
func (a asked) fields(name string) []fingerprint.Path {
	var paths []fingerprint.Path
	for _, text := range split(a.take(name), ",") {
		path, err := parseField(text, a.draft.Manifest.Object)
		if err == nil && (len(path) < 2 || slices.Contains([]string{"f:apiVersion", "f:kind", "f:status"}, path[0])) {
			err = errors.New("is not a field that a manifest sets")
		}
		if err != nil {
			a.set.add("%s: annotation %s/%s names %q, which %v; write for example /spec/replicas or spec.template.spec.containers[name=web].image",
				a.draft.title(), a.set.Name, name, text, err)
			continue
		}
		paths = append(paths, path)
	}
	return paths
}

// parseField reads a JSON pointer, or a path such as spec.containers[name=web].image.
func parseField(text string, manifest map[string]any) (fingerprint.Path, error) {
	if pointer, ok := strings.CutPrefix(text, "/"); ok {
		return parsePointer(pointer, manifest)
	}
	var path fingerprint.Path
	for text != "" {
		if inner, ok := strings.CutPrefix(text, "["); ok {
			selector, rest, closed := strings.Cut(inner, "]")
			if !closed {
				return nil, errors.New("has no closing bracket")
			}
			element, err := selected(selector)
			if err != nil {
				return nil, err
			}
			path, text = append(path, element), strings.TrimPrefix(rest, ".")
			continue
		}
		end := strings.IndexAny(text, ".[")
		if end < 0 {
			end = len(text)
		}
		if end == 0 {
			return nil, errors.New("has an empty part")
		}
		path, text = append(path, "f:"+text[:end]), strings.TrimPrefix(text[end:], ".")
	}
	return path, nil
}

// selected returns the element of "name=web;protocol=TCP", or of the name of a field.
func selected(selector string) (string, error) {
	if !strings.Contains(selector, "=") {
		return "f:" + selector, nil
	}
	key := map[string]any{}
	for _, part := range split(selector, ";") {
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return "", fmt.Errorf("has the selector %q", part)
		}
		key[name] = value
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			key[name] = n
		}
	}
	data, err := json.Marshal(key)
	return "k:" + string(data), err
}

// parsePointer reads a JSON pointer. Items of lists are known by their names.
func parsePointer(text string, value any) (fingerprint.Path, error) {
	var path fingerprint.Path
	for part := range strings.SplitSeq(text, "/") {
		name := strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		items, isList := value.([]any)
		if !isList {
			fields, _ := value.(map[string]any)
			path, value = append(path, "f:"+name), fields[name]
			continue
		}
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i >= len(items) {
			return nil, fmt.Errorf("has no item %q", name)
		}
		fields, _ := items[i].(map[string]any)
		itemName, ok := fields["name"].(string)
		if !ok {
			return nil, fmt.Errorf("is in a list whose items have no name")
		}
		element, err := selected("name=" + itemName)
		if err != nil {
			return nil, err
		}
		path, value = append(path, element), items[i]
	}
	return path, nil
}
