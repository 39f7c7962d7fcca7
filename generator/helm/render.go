package helm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/generator/internal/rendering"
	"github.com/trimtab-dev/trimtab/internal/golden"
)

// Release is what a chart is rendered for without a component.
type Release struct {
	Namespace, Name string
	// Values have priority over those of the chart and of [Options].
	Values map[string]any
	// Revision is 1 for an installation, and more for an upgrade. Zero means 1.
	Revision int64
	// Capabilities are those of the cluster. The zero value means those of the Kubernetes version that Helm was built
	// for.
	Capabilities component.Capabilities
	// Lookup is the function lookup of templates. It returns an empty map for what does not exist. Nil means that nothing
	// exists.
	Lookup func(apiVersion, kind, namespace, name string) (map[string]any, error)

	taken *taken
}

// Render renders the chart without a component, as helm template does. Functions such as randAlphaNum return something
// else each time.
func (g *Generator) Render(ctx context.Context, r Release) (component.Set, error) {
	set, err := g.execute(ctx, &r, &draws{fixed: golden.Is(ctx)})
	if err != nil {
		return component.Set{}, fmt.Errorf("chart %s: %w", g.chart.name, err)
	}
	return set, nil
}

// render renders the chart for the component of the context; without one, as Render does.
func (g *Generator) render(ctx context.Context, namespace, name string, values map[string]any) (component.Set, error) {
	if _, err := component.ReconcilerNameFromContext(ctx); err != nil {
		return g.Render(ctx, Release{Namespace: namespace, Name: name, Values: values})
	}
	revision, err := component.ComponentRevisionFromContext(ctx)
	if err != nil {
		return component.Set{}, err
	}
	r := Release{Namespace: namespace, Name: name, Values: values, Revision: revision, Lookup: rendering.Lookup(ctx)}
	if g.chart.capable || mentionsIn(values) {
		if r.Capabilities, err = component.CapabilitiesFromContext(ctx); err != nil {
			return component.Set{}, err
		}
	}
	if r.taken, err = g.taking(ctx, &r); err != nil {
		return component.Set{}, fmt.Errorf("chart %s: %w", g.chart.name, err)
	}
	d, err := g.pending.draws(ctx, r)
	if err != nil {
		return component.Set{}, err
	}
	set, err := g.execute(ctx, &r, d)
	if err != nil {
		return component.Set{}, fmt.Errorf("chart %s: %w", g.chart.name, err)
	}
	if err := g.genuine(ctx, &r, &set); err != nil {
		return component.Set{}, fmt.Errorf("chart %s: %w", g.chart.name, err)
	}
	if drawn := d.keep(&set); drawn != nil && r.taken != nil && r.taken.had != nil {
		drawn.Uncounted()
	}
	if err := unclaimed(ctx, &r, &set); err != nil {
		return component.Set{}, err
	}
	return set, g.announce(ctx, r.taken)
}

// execute renders the chart.
func (g *Generator) execute(ctx context.Context, r *Release, d *draws) (component.Set, error) {
	c, err := g.chart.load()
	if err != nil {
		return component.Set{}, err
	}
	capabilities, err := capabilitiesOf(r.Capabilities)
	if err != nil {
		return component.Set{}, err
	}
	if want := c.Metadata.KubeVersion; want != "" && !chartutil.IsCompatibleRange(want, capabilities.KubeVersion.String()) {
		return component.Set{}, fmt.Errorf("it requires Kubernetes %s, and the cluster has %s", want, capabilities.KubeVersion.Version)
	}
	all, err := g.valuesOf(c, r, capabilities)
	if err != nil {
		return component.Set{}, err
	}
	if r.taken != nil && r.taken.stored {
		return g.setOf(ctx, c, r.taken.files(), r, d.digest)
	}
	functions := d.functions(g.chart.sites)
	if r.Lookup != nil {
		functions["lookup"] = r.Lookup
	}
	files, err := engine.Engine{CustomTemplateFuncs: functions}.RenderWithContext(ctx, c, all)
	if err != nil {
		return component.Set{}, rendering.OneLine(err)
	}
	return g.setOf(ctx, c, files, r, d.digest)
}

// revisionOf returns the revision of a release.
func revisionOf(r *Release) int { return max(int(r.Revision), 1) }

// valuesOf returns what templates are rendered with. The chart loses the sub-charts that are switched off.
func (g *Generator) valuesOf(c *chart.Chart, r *Release, capabilities *common.Capabilities) (common.Values, error) {
	values, err := plain(r.Values)
	if err != nil {
		return nil, err
	}
	values = loader.MergeMaps(g.optionValues(), values) // null stays, and removes what the chart has
	if err := chartutil.ProcessDependencies(c, values); err != nil {
		return nil, err
	}
	revision := revisionOf(r)
	all, err := util.ToRenderValues(c, values, common.ReleaseOptions{
		Name: r.Name, Namespace: r.Namespace, Revision: revision, IsInstall: revision == 1, IsUpgrade: revision > 1,
	}, capabilities)
	if err != nil {
		return nil, discreet(err)
	}
	return all, nil
}

// Validate checks values against the values.schema.json of the chart and of the sub-charts that they switch on. The
// error names fields and no values. It is for tests and for admission webhooks; the operator checks them before it
// writes anything.
func (g *Generator) Validate(values map[string]any) error {
	c, err := g.chart.load()
	if err == nil {
		_, err = g.valuesOf(c, &Release{Values: values}, common.DefaultCapabilities)
	}
	if err != nil {
		return fmt.Errorf("chart %s: %w", g.chart.name, err)
	}
	return nil
}

// optionValues returns a copy of the values of the options: Helm changes what it is given.
func (g *Generator) optionValues() map[string]any {
	values, _ := plain(g.options.Values) // they were decoded from JSON
	return values
}

// capabilitiesOf returns capabilities as Helm has them.
func capabilitiesOf(c component.Capabilities) (*common.Capabilities, error) {
	all := common.DefaultCapabilities.Copy()
	if c.Version != "" {
		version, err := common.ParseKubeVersion(c.Version)
		if err != nil {
			return nil, fmt.Errorf("the version of the cluster is %q: %w", c.Version, err)
		}
		all.KubeVersion = *version
	}
	if len(c.APIs) > 0 {
		all.APIVersions = c.APIs
	}
	return all, nil
}

// most is how many hooks a chart may have.
const most = 10000

// setOf returns the objects that were rendered.
func (g *Generator) setOf(ctx context.Context, c *chart.Chart, files map[string]string, r *Release, digest string) (component.Set, error) {
	for name := range files {
		if strings.HasSuffix(name, "NOTES.txt") {
			delete(files, name)
		}
	}
	out := &output{files: files, objects: rendering.Objects{}, deleting: map[string]rendering.Objects{}, revision: revisionOf(r), digest: digest, taken: r.taken}
	hooks, plain, err := out.sort()
	if err != nil {
		return component.Set{}, err
	}
	if len(hooks) > most {
		return component.Set{}, fmt.Errorf("it has more than %d hooks", most)
	}
	before, after := out.split(hooks)
	var deleting []deletion
	if !g.options.SkipDeleteHooks && (r.taken == nil || r.taken.mode != giveBack) { // what Helm gets back is not deleted
		deleting = deletions(hooks)
	}
	if !g.options.SkipCRDs {
		if err := out.addDefinitions(c, before); err != nil {
			return component.Set{}, err
		}
	}
	if err := out.addPlain(ctx, plain); err != nil {
		return component.Set{}, err
	}
	if err := errors.Join(out.adopt(ctx, before), out.adopt(ctx, after)); err != nil {
		return component.Set{}, err
	}
	out.last = int16(len(after))
	err = errors.Join(out.addHooks(before, first(before)), out.addHooks(after, 1))
	out.addSecrets()
	for _, d := range deleting {
		err = errors.Join(err, out.addDeletion(d))
	}
	return out.set, err
}

// addDefinitions adds what is in crds/, before all hooks.
func (o *output) addDefinitions(c *chart.Chart, before []hook) error {
	for _, crd := range c.CRDObjects() {
		o.files[crd.Filename] = string(crd.File.Data)
		documents, err := o.read(crd.Filename)
		if err != nil {
			return err
		}
		for _, d := range documents {
			err := o.add(d, func(_ *unstructured.Unstructured, d *component.Dependent) {
				if len(before) > 0 {
					d.Wave(first(before) - 1)
				}
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
