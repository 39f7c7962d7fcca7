package helm

import (
	"cmp"
	"fmt"
	"slices"

	release "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
)

// A hook is a dependent in a wave of its own, because Helm runs one after the other: those before an installation or an
// upgrade in the waves -n to -1, and those after it in the waves 1 to m. What is no hook is in wave 0.
//
// A hook that runs, a Job or a Pod, has the digest of the revision in an annotation. With another revision it is another
// manifest, for which the object is created anew; with the same it is the same, which has ended and is never created
// again, whoever deletes it.

// revisionAnnotation is the annotation of hooks that run once for each revision.
const revisionAnnotation = "trimtab.dev/revision-digest"

// split returns the hooks that run before and after what is no hook in this revision, in Helm's order.
func (o *output) split(hooks []*release.Hook) (before, after []*release.Hook) {
	for _, h := range hooks {
		switch pre, post := o.phases(h); {
		case pre:
			before = append(before, h)
		case post:
			after = append(after, h)
		}
	}
	for _, list := range [][]*release.Hook{before, after} {
		slices.SortStableFunc(list, func(a, b *release.Hook) int {
			return cmp.Or(cmp.Compare(a.Weight, b.Weight), cmp.Compare(a.Name, b.Name))
		})
	}
	return before, after
}

// phases reports whether a hook runs before and after what is no hook. A hook of the installation stays in later
// revisions, in which it does not run again.
func (o *output) phases(h *release.Hook) (before, after bool) {
	pre, post := release.HookPreInstall, release.HookPostInstall
	if o.revision > 1 && isUpgrade(h) {
		pre, post = release.HookPreUpgrade, release.HookPostUpgrade
	}
	return slices.Contains(h.Events, pre), slices.Contains(h.Events, post)
}

// isUpgrade reports whether a hook runs in upgrades.
func isUpgrade(h *release.Hook) bool {
	return slices.Contains(h.Events, release.HookPreUpgrade) || slices.Contains(h.Events, release.HookPostUpgrade)
}

// checkHooks refuses hooks that would not run.
func (g *Generator) checkHooks(hooks []*release.Hook) error {
	for _, h := range hooks {
		if (slices.Contains(h.Events, release.HookPreDelete) || slices.Contains(h.Events, release.HookPostDelete)) && !g.options.SkipDeleteHooks {
			return fmt.Errorf("%s: the hook %s %s runs when a release is deleted, which is not supported; set Options.SkipDeleteHooks to leave it out",
				h.Path, h.Kind, h.Name)
		}
	}
	return nil
}

// first returns the first wave of hooks that run before what is no hook.
func first(before []*release.Hook) int16 { return int16(-len(before)) }

// addHooks adds hooks, one for each wave from wave on.
func (o *output) addHooks(hooks []*release.Hook, wave int16) error {
	last := wave + int16(len(hooks)) - 1
	for _, h := range hooks {
		err := o.add(h.Path, h.Manifest, func(u *unstructured.Unstructured, d *component.Dependent) { o.setHook(u, d, h, wave, last) })
		if err != nil {
			return err
		}
		wave++
	}
	return nil
}

// setHook has a dependent treated as a hook.
func (o *output) setHook(u *unstructured.Unstructured, d *component.Dependent, h *release.Hook, wave, last int16) {
	d.Wave(wave)
	purge := slices.Contains(h.DeletePolicies, release.HookSucceeded) && h.Kind != "CustomResourceDefinition"
	if purge {
		// What Helm creates before and again after the rest, such as the ServiceAccount of hooks, stays in between.
		if _, after := o.phases(h); after && wave < 0 {
			last = o.last
		}
		d.PurgeAfter(last)
	}
	switch runs := h.Kind == "Job" || h.Kind == "Pod"; {
	case !isUpgrade(h):
		d.Policies(api.Policies{ReconcilePolicy: api.ReconcilePolicyOnce})
	case runs || purge:
		annotations := u.GetAnnotations() // that of hooks is there
		annotations[revisionAnnotation] = o.digest
		u.SetAnnotations(annotations)
		if runs {
			d.Policies(api.Policies{UpdatePolicy: api.UpdatePolicyRecreate})
		}
	}
}
