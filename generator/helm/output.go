package helm

import (
	"fmt"
	"strings"

	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/generator/internal/rendering"
)

// output becomes a set of objects.
type output struct {
	set component.Set
	// files are the rendered files.
	files   map[string]string
	objects rendering.Objects
	// deleting are the hooks of deletions that were added, by their event.
	deleting map[string]rendering.Objects
	// revision is that of the release, and digest identifies it; empty if that is not known.
	revision int
	digest   string
	// event is that of the hooks of deletions that are added; empty for everything else.
	event string
	// last is the last wave of hooks.
	last int16
	// taken is the Helm release that is taken over; nil if there is none.
	taken *taken
}

// document is a document of a rendered file.
type document struct {
	file, text string
	object     *unstructured.Unstructured // may be a list
}

// read decodes the documents of a file, in order.
func (o *output) read(file string) ([]document, error) {
	split := releaseutil.SplitManifests(o.files[file])
	var out []document
	for i := range len(split) {
		text := split[fmt.Sprintf("manifest-%d", i)]
		// Helm joins them with line breaks, which a text at the end of a file may keep.
		u, err := rendering.Decode(text + "\n")
		if err != nil {
			return nil, rendering.Undecoded(file, rendering.LineOf(o.files[file], text), err)
		}
		if u != nil {
			out = append(out, document{file, text, u})
		}
	}
	return out, nil
}

// add adds what a document contains. set sets what is special about it, unless it is nil.
func (o *output) add(d document, set func(*unstructured.Unstructured, *component.Dependent)) error {
	objects := o.objects
	if o.event != "" {
		if o.deleting[o.event] == nil {
			o.deleting[o.event] = rendering.Objects{}
		}
		objects = o.deleting[o.event]
	}
	return objects.Add(d.object, o.where(d), func(u *unstructured.Unstructured) {
		dependent := o.set.Add(u)
		returned := o.taken != nil && o.taken.mode == giveBack
		if returned || strings.EqualFold(strings.TrimSpace(u.GetAnnotations()["helm.sh/resource-policy"]), "keep") {
			dependent.Policies(api.Policies{DeletePolicy: api.DeletePolicyOrphan})
		}
		if o.taken.gains(u) {
			dependent.Uncounted()
		}
		if set != nil {
			set(u, dependent)
		}
	})
}

// where returns a file and the line in it at which a document begins, as rendered.
func (o *output) where(d document) string {
	if line := rendering.LineOf(o.files[d.file], d.text); line > 0 {
		return fmt.Sprintf("%s:%d", d.file, line)
	}
	return d.file
}
