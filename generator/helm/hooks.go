package helm

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
)

// A hook is a dependent in a wave of its own, because Helm runs one after the other: those before an installation or an
// upgrade in the waves -n to -1, and those after it in the waves 1 to m. What is no hook is in wave 0.
//
// A Job or a Pod has the digest of the revision in an annotation. A new revision changes the manifest, so the object is
// deleted and created again. Within a revision the manifest stays the same: an object that has ended is not created again,
// whoever deletes it.

// revisionAnnotation is the annotation of hooks that run once for each revision.
const revisionAnnotation = "trimtab.dev/revision-digest"

// hook is a document with the annotation of hooks.
type hook struct {
	document

	events   []release.HookEvent
	weight   int
	policies []release.HookDeletePolicy
	// bare: it is taken over as it is.
	bare bool
}

// sort returns the hooks and all other documents, in the order of their kinds, as Helm tells them apart. What has the
// annotation with an event that Helm does not know is none of both.
func (o *output) sort() (hooks []hook, plain []document, err error) {
	for _, file := range slices.Sorted(maps.Keys(o.files)) {
		if strings.HasPrefix(path.Base(file), "_") {
			continue
		}
		documents, err := o.read(file)
		if err != nil {
			return nil, nil, err
		}
		for _, d := range documents {
			events, is := d.object.GetAnnotations()[release.HookAnnotation]
			if !is {
				plain = append(plain, d)
			} else if h, known := hookOf(d, events); known {
				hooks = append(hooks, h)
			}
		}
	}
	slices.SortStableFunc(hooks, func(a, b hook) int { return byKind(a.object.GetKind(), b.object.GetKind()) })
	slices.SortStableFunc(plain, func(a, b document) int { return byKind(a.object.GetKind(), b.object.GetKind()) })
	return hooks, plain, nil
}

// hookOf reads the annotations of a hook. It is known if all its events are.
func hookOf(d document, events string) (h hook, known bool) {
	annotations := d.object.GetAnnotations()
	h.document = d
	h.weight, _ = strconv.Atoi(annotations[release.HookWeightAnnotation]) // Helm takes 0 as well
	for event := range strings.SplitSeq(events, ",") {
		e := release.HookEvent(strings.ToLower(strings.TrimSpace(event)))
		switch e {
		case "test-success": // of Helm 2
			e = release.HookTest
		case release.HookPreInstall, release.HookPostInstall, release.HookPreUpgrade, release.HookPostUpgrade, release.HookPreDelete,
			release.HookPostDelete, release.HookPreRollback, release.HookPostRollback, release.HookTest:
		default:
			return h, false
		}
		h.events = append(h.events, e)
	}
	for policy := range strings.SplitSeq(annotations[release.HookDeleteAnnotation], ",") {
		h.policies = append(h.policies, release.HookDeletePolicy(strings.ToLower(strings.TrimSpace(policy))))
	}
	return h, true
}

// byKind compares kinds in the order in which Helm creates them. Those that it does not know come last.
func byKind(a, b string) int {
	rank := func(kind string) int {
		if i := slices.Index(releaseutil.InstallOrder, kind); i >= 0 {
			return i
		}
		return len(releaseutil.InstallOrder)
	}
	if i, j := rank(a), rank(b); i != j || i < len(releaseutil.InstallOrder) {
		return cmp.Compare(i, j)
	}
	return cmp.Compare(a, b)
}

// split returns the hooks that run before and after what is no hook in this revision, in Helm's order.
func (o *output) split(hooks []hook) (before, after []hook) {
	for _, h := range hooks {
		switch pre, post := o.phases(h); {
		case pre:
			before = append(before, h)
		case post:
			after = append(after, h)
		}
	}
	inOrder(before)
	inOrder(after)
	return before, after
}

// inOrder sorts hooks of one phase, which are in the order of their kinds.
func inOrder(hooks []hook) {
	slices.SortStableFunc(hooks, func(a, b hook) int {
		return cmp.Or(cmp.Compare(a.weight, b.weight), cmp.Compare(a.object.GetName(), b.object.GetName()))
	})
}

// phases reports whether a hook runs before and after what is no hook. In later revisions, a hook of the installation
// alone stays as it is, unless it is one that runs: that has ended, and goes.
func (o *output) phases(h hook) (before, after bool) {
	pre, post := release.HookPreInstall, release.HookPostInstall
	switch {
	case o.taken != nil && o.taken.stored && (h.runs() || h.purged()): // Helm has run it
		return false, false
	case o.revision > 1 && h.isUpgrade():
		pre, post = release.HookPreUpgrade, release.HookPostUpgrade
	case o.revision > 1 && (h.runs() || h.purged()):
		return false, false
	}
	return slices.Contains(h.events, pre), slices.Contains(h.events, post)
}

// installed reports whether there was an installation before.
func (o *output) installed() bool { return o.revision > 1 || o.taken != nil && o.taken.stored }

// runs reports whether a hook does its work and ends.
func (h hook) runs() bool { return h.object.GetKind() == "Job" || h.object.GetKind() == "Pod" }

// purged reports whether a hook is deleted when its phase has ended.
func (h hook) purged() bool {
	return slices.Contains(h.policies, release.HookSucceeded) && h.object.GetKind() != "CustomResourceDefinition"
}

// isUpgrade reports whether a hook runs in upgrades.
func (h hook) isUpgrade() bool {
	return slices.Contains(h.events, release.HookPreUpgrade) || slices.Contains(h.events, release.HookPostUpgrade)
}

// first returns the first wave of hooks that run before what is no hook.
func first(before []hook) int16 { return int16(-len(before)) }

// addHooks adds hooks, one for each wave from wave on.
func (o *output) addHooks(hooks []hook, wave int16) error {
	last := wave + int16(len(hooks)) - 1
	for _, h := range hooks {
		err := o.add(h.document, func(u *unstructured.Unstructured, d *component.Dependent) { o.setHook(u, d, h, wave, last) })
		if err != nil {
			return err
		}
		wave++
	}
	return nil
}

// setHook has a dependent treated as a hook.
func (o *output) setHook(u *unstructured.Unstructured, d *component.Dependent, h hook, wave, last int16) {
	d.Wave(wave)
	if h.purged() {
		// What Helm creates before and again after the rest, such as the ServiceAccount of hooks, stays in between.
		if _, after := o.phases(h); after && wave < 0 {
			last = o.last
		}
		d.PurgeAfter(last)
	}
	switch {
	case h.bare:
		d.Policies(api.Policies{ReconcilePolicy: api.ReconcilePolicyOnce, UpdatePolicy: api.UpdatePolicySsaMerge})
	case o.installed() && !h.isUpgrade():
		d.Policies(api.Policies{ReconcilePolicy: api.ReconcilePolicyOnce})
	case h.runs() || h.purged():
		annotations := u.GetAnnotations() // that of hooks is there
		annotations[revisionAnnotation] = o.digest
		u.SetAnnotations(annotations)
		if h.runs() {
			d.Policies(api.Policies{UpdatePolicy: api.UpdatePolicyRecreate})
		}
	}
}
