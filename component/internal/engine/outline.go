package engine

import (
	"fmt"
	"unique"

	"github.com/trimtab-dev/trimtab/component/internal/desired"
)

// outline is what is kept of a rendered object: what is its own, and a shape that it shares with others.
type outline struct {
	name, namespace, digest, twin string
	needs                         []string
	shape                         *desired.Object
}

// outlines returns what is kept of objects.
func outlines(objects []desired.Object) []outline {
	shapes := map[string]*desired.Object{}
	out := make([]outline, len(objects))
	for i := range objects {
		shape := objects[i]
		item := shape.Item
		twin := shape.Twin
		shape.Manifest, shape.Initial, shape.Twin = nil, nil, ""
		shape.Item.Name, shape.Item.Namespace, shape.Item.Digest, shape.Item.DependsOn = "", "", "", nil
		text := fmt.Sprintf("%#v", shape)
		if shapes[text] == nil {
			shapes[text] = &shape
		}
		out[i] = outline{item.Name, unique.Make(item.Namespace).Value(), item.Digest, twin, item.DependsOn, shapes[text]}
	}
	return out
}

// full returns the objects of outlines, without manifests.
func full(outlines []outline) []desired.Object {
	out := make([]desired.Object, len(outlines))
	for i, o := range outlines {
		out[i] = *o.shape
		out[i].Twin = o.twin
		out[i].Item.Name, out[i].Item.Namespace, out[i].Item.Digest, out[i].Item.DependsOn = o.name, o.namespace, o.digest, o.needs
	}
	return out
}
