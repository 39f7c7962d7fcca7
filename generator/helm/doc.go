// Package helm makes components from Helm charts: [NewGenerator] returns a [component.Generator] that renders a chart
// with Helm's own template engine, and [NewRenderer] makes a renderer of it for a kind with a typed spec.
//
// Only the rendering is Helm's. There are no release Secrets and no three-way merges: what a chart renders are
// dependents of a component, which are applied in order, kept as rendered, and deleted with the component. Nothing
// about a chart has to be changed for that.
//
//   - The values are the chart's values.yaml, with [Options.Values] and then the component's own over them. They are
//     checked against values.schema.json before anything is written.
//   - .Release.Name and .Release.Namespace are those of the component; see [component.PlacementConfiguration].
//     .Release.Revision is status.revision. The revision 1 is an installation, and each other one an upgrade.
//   - .Capabilities are those of the cluster of the dependents. A chart that mentions them is rendered again when they
//     change. The function lookup reads from that cluster, and what it read is watched.
//   - Functions whose result is another one each time, such as randAlphaNum, genCA and now, return the same as long as
//     the revision is the same. Their results are stored in a Secret beside the dependents.
//   - Hooks become dependents of their own waves, and run once for each revision. Hooks of deletions become delete hooks of
//     the component; see [component.Dependent.PreDelete]. Tests are left out, and so are hooks of rollbacks, which do not exist here: a component that goes back to an earlier spec is upgraded to it.
//   - Definitions in crds/ are dependents, too. They are updated with the chart, and not deleted while there are objects
//     of their kinds.
//   - A component can take over a Helm release, and give it back: its annotation OPERATOR/helm-release says so.
//   - What the annotation helm.sh/resource-policy keeps stays when the component is deleted.
//
// docs/charts.md has all that differs from Helm.
package helm
