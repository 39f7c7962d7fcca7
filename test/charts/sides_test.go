package charts_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/generator/helm"
	"github.com/trimtab-dev/trimtab/internal/poll"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	release "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

const (
	operator    = "charts.test"
	namespace   = "shop"
	name        = "demo"
	patience    = poll.Patience
	kubeVersion = "v1.35.2"
)

// object is what one of both makes of a document.
type object struct {
	// phase is "before" or "after" for hooks, "pre-delete" or "post-delete" for those of deletions, "crds" for the folder of
	// that name, and empty for all others.
	phase string
	// turn is the number of a hook in its phase.
	turn    int
	content map[string]any
	// purged is the phase after which a hook is deleted: "before", "after" or "never".
	purged string
}

func (o object) key() string {
	u := unstructured.Unstructured{Object: o.content}
	return strings.Join([]string{u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName()}, " ")
}

// helmSide renders a chart as helm template does. upgrade is its flag --is-upgrade.
func helmSide(ctx context.Context, folder string, values map[string]any, apis []string, upgrade bool) ([]object, error) {
	c, err := loader.LoadDir(folder)
	if err != nil {
		return nil, err
	}
	version, err := common.ParseKubeVersion(kubeVersion)
	if err != nil {
		return nil, err
	}
	i := action.NewInstall(action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler)))
	i.DryRunStrategy, i.Replace, i.ReleaseName, i.Namespace = action.DryRunClient, true, name, namespace
	i.KubeVersion, i.APIVersions, i.IsUpgrade, i.IncludeCRDs = version, apis, upgrade, true
	answer, err := i.RunWithContext(ctx, c, values)
	if err != nil {
		return nil, err
	}
	rel, ok := answer.(*release.Release)
	if !ok {
		return nil, fmt.Errorf("a release is a %T", answer)
	}
	out, err := appendAll(nil, "", 0, rel.Manifest)
	if err != nil {
		return nil, err
	}
	phases := map[string][]release.HookEvent{
		"before": {release.HookPreInstall, release.HookPreUpgrade}, "after": {release.HookPostInstall, release.HookPostUpgrade},
	}
	before, after := inTurn(rel.Hooks, phases["before"], upgrade), inTurn(rel.Hooks, phases["after"], upgrade)
	twice := func(h *release.Hook) bool { return slices.Contains(before, h) && slices.Contains(after, h) }
	for turn, h := range before {
		purged := "before"
		if twice(h) {
			purged = "after"
		}
		if out, err = appendHook(out, "before", turn+1, h, purged); err != nil {
			return nil, err
		}
	}
	// Helm runs hooks of both phases twice. An object can be a dependent only once: it comes with the first.
	for turn, h := range slices.DeleteFunc(after, twice) {
		if out, err = appendHook(out, "after", turn+1, h, "after"); err != nil {
			return nil, err
		}
	}
	var crds []object
	for _, crd := range c.CRDObjects() {
		if crds, err = appendAll(crds, "crds", 0, string(crd.File.Data)); err != nil {
			return nil, err
		}
	}
	// Helm applies them first. That they come before what is no hook is their order.
	if slices.ContainsFunc(out, func(o object) bool { return o.phase == "before" }) {
		copy(out, crds)
	}
	for _, event := range []release.HookEvent{release.HookPreDelete, release.HookPostDelete} {
		for turn, h := range inTurn(rel.Hooks, []release.HookEvent{event}, false) {
			if out, err = appendHook(out, string(event), turn+1, h, "never"); err != nil { // all go in the end
				return nil, err
			}
		}
	}
	return out, nil
}

// inTurn returns the hooks of an installation, or of an upgrade after it, in the order in which Helm runs them: by
// weight, then by name, then by kind as they come. What an installation has created, and has not deleted, is still there
// after an upgrade, but for Jobs and Pods, which have ended: we delete them.
func inTurn(hooks []*release.Hook, events []release.HookEvent, upgrade bool) []*release.Hook {
	var out []*release.Hook
	for _, h := range hooks {
		later := slices.Contains(h.Events, release.HookPreUpgrade) || slices.Contains(h.Events, release.HookPostUpgrade)
		ends := h.Kind == "Job" || h.Kind == "Pod" || slices.Contains(h.DeletePolicies, release.HookSucceeded)
		event := events[0]
		if upgrade && later {
			event = events[1]
		}
		if slices.Contains(h.Events, event) && (!upgrade || later || !ends) {
			out = append(out, h)
		}
	}
	slices.SortStableFunc(out, func(a, b *release.Hook) int {
		return cmp.Or(cmp.Compare(a.Weight, b.Weight), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// appendHook appends the objects of a hook.
func appendHook(out []object, phase string, turn int, h *release.Hook, purged string) ([]object, error) {
	if !slices.Contains(h.DeletePolicies, release.HookSucceeded) || h.Kind == "CustomResourceDefinition" {
		purged = "never"
	}
	n := len(out)
	out, err := appendAll(out, phase, turn, h.Manifest)
	for i := n; i < len(out); i++ {
		out[i].purged = purged
	}
	return out, err
}

// appendAll appends the objects of a text.
func appendAll(out []object, phase string, turn int, text string) ([]object, error) {
	for r := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text))); ; {
		document, err := r.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		u, err := decode(string(document))
		if err != nil {
			return nil, err
		}
		if u == nil {
			continue
		}
		if !u.IsList() {
			out = append(out, object{phase: phase, turn: turn, content: u.Object, purged: "never"})
			continue
		}
		list, err := u.ToList()
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			out = append(out, object{phase: phase, turn: turn, content: list.Items[i].Object, purged: "never"})
		}
	}
}

// ourSide renders a chart with generator/helm.
func ourSide(ctx context.Context, g *helm.Generator, values map[string]any, apis []string, upgrade bool) ([]object, error) {
	r := helm.Release{Namespace: namespace, Name: name, Values: values, Revision: 1}
	if upgrade {
		r.Revision = 2
	}
	r.Capabilities = component.Capabilities{Version: kubeVersion, APIs: slices.Concat(common.DefaultVersionSet, apis)}
	set, err := g.Render(ctx, r)
	if err != nil {
		return nil, err
	}
	objects, err := set.Annotated(operator, nil)
	if err != nil {
		return nil, err
	}
	out := make([]object, 0, len(objects))
	highest := 0
	for _, o := range objects {
		u, ok := o.(*unstructured.Unstructured)
		if !ok {
			return nil, fmt.Errorf("an object is a %T", o)
		}
		wave, err := strconv.Atoi(cmp.Or(u.GetAnnotations()[operator+"/apply-order"], "0"))
		if err != nil {
			return nil, err
		}
		purged := cmp.Or(u.GetAnnotations()[operator+"/purge-order"], "never")
		if phase := u.GetAnnotations()[operator+"/apply-on"]; phase != "" {
			out = append(out, object{phase: phase, turn: wave + 1, content: bare(u), purged: purged})
			continue
		}
		out = append(out, object{turn: wave, content: bare(u), purged: purged})
		highest = max(highest, wave)
	}
	for i, o := range out {
		switch o.purged {
		case "-1":
			out[i].purged = "before"
		case strconv.Itoa(highest):
			out[i].purged = "after"
		}
	}
	return phased(out)
}

// bare returns an object without the annotations of trimtab.
func bare(u *unstructured.Unstructured) map[string]any {
	u = u.DeepCopy()
	annotations := u.GetAnnotations()
	had := len(annotations) > 0
	for key := range annotations {
		if strings.HasPrefix(key, operator+"/") || key == "trimtab.dev/revision-digest" {
			delete(annotations, key)
		}
	}
	if had && len(annotations) == 0 {
		annotations = nil
	}
	if had {
		u.SetAnnotations(annotations)
	}
	return u.Object
}

// phased turns the waves of objects into phases and turns: of those in waves below 0, the definitions come first, and
// the hooks follow. The hooks in waves above 0 are the last.
func phased(objects []object) ([]object, error) {
	hooks := 0
	for _, o := range objects {
		if o.turn < 0 && isHook(o) {
			hooks = max(hooks, -o.turn)
		}
	}
	for i, o := range objects {
		switch {
		case o.phase != "":
		case o.turn > 0:
			objects[i].phase = "after"
		case o.turn < 0 && isHook(o):
			objects[i].phase, objects[i].turn = "before", hooks+o.turn+1
		case o.turn < -hooks:
			objects[i].phase, objects[i].turn = "crds", 0
		case o.turn < 0:
			return nil, fmt.Errorf("%s is in the wave %d, and is no hook", o.key(), o.turn)
		}
	}
	return objects, nil
}

func isHook(o object) bool {
	u := unstructured.Unstructured{Object: o.content}
	return u.GetAnnotations()[release.HookAnnotation] != ""
}

// decoded are documents that were decoded before: definitions are large, and the same in each rendering. Nobody changes
// them.
var decoded sync.Map

// decode decodes a document. It returns nil for one that is empty.
func decode(document string) (*unstructured.Unstructured, error) {
	if known, ok := decoded.Load(document); ok {
		u, _ := known.(*unstructured.Unstructured)
		return u, nil
	}
	text, err := sigsyaml.YAMLToJSON([]byte(document))
	if err != nil {
		return nil, err
	}
	var u *unstructured.Unstructured
	if !bytes.Equal(text, []byte("null")) && !bytes.Equal(text, []byte("{}")) {
		u = &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(text); err != nil {
			return nil, err
		}
	}
	decoded.Store(document, u)
	return u, nil
}
