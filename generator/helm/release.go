package helm

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	helmcommon "helm.sh/helm/v4/pkg/release/common"
	release "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/generator/internal/rendering"
)

// A component whose annotation says so takes over the Helm release of its name and namespace, with the objects and the
// Secrets in which Helm has stored it.
//
//	Secret of Helm -> first revision, as Helm has installed it -> the Secrets are the component's, and Helm sees them no more
//
// As long as the chart and the values are those of the release, the first revision is the manifest that Helm has stored.
// The chart is rendered only for the names of its objects, so nothing can come out otherwise: nothing restarts, no hook
// runs, and no password is drawn.
// The objects keep what Helm has written on them about its release. So Helm can have them back.

// Values of the annotation.
const (
	takeUnchanged = "unchanged" // only if chart and values are those of the release
	takeUpgrade   = "upgrade"   // with whatever differs
	giveBack      = "return"    // all stays when the component is deleted, and Helm sees its release again
)

// Names in objects of Helm.
const (
	releaseType  = "helm.sh/release.v1"  // of Secrets
	releaseKey   = "release"             // of their data
	secretPrefix = "sh.helm.release.v1." //nolint:gosec // of their names
	ownerLabel   = "owner"
	ownedByHelm  = "helm"
	ownedByUs    = "trimtab"
	managerLabel = "app.kubernetes.io/managed-by"
)

// largest is how many bytes a release has at most. What Helm stores is at most 1 MiB, compressed.
const largest = 64 << 20

// taken is a Helm release that a component takes over.
type taken struct {
	namespace, name, mode string

	secrets []corev1.Secret // in the order of their versions
	// recorded are the dependents of the component, by their keys.
	recorded map[string]bool
	last     *release.Release
	// stored: the component is as Helm has stored it in the last version.
	stored bool
	// had are the objects of the last version, by rendering.KeyOf; nil if they are not told from others. What the first
	// revision has besides is new: it makes up for nothing that is lost.
	had map[string]bool
}

// taking returns the release that a component takes over, or nil. It sets the revision to the one that follows Helm's.
func (g *Generator) taking(ctx context.Context, r *Release) (*taken, error) {
	owner, err := component.ComponentFromContext(ctx)
	if err != nil {
		return nil, err
	}
	annotation, err := annotationOf(ctx)
	if err != nil {
		return nil, err
	}
	t := &taken{namespace: r.Namespace, name: r.Name, mode: owner.GetAnnotations()[annotation], recorded: map[string]bool{}}
	switch t.mode {
	case "":
		return nil, nil //nolint:nilnil // nothing is taken over, and nothing is wrong
	case takeUnchanged, takeUpgrade, giveBack:
	default:
		return nil, fmt.Errorf("the annotation %s is %q; it must be %q, %q or %q", annotation, t.mode, takeUnchanged, takeUpgrade, giveBack)
	}
	if c, ok := owner.(component.Object); ok {
		for _, item := range c.GetStatus().Inventory {
			t.recorded[item.Key()] = true
		}
	}
	if err := t.find(ctx, annotation); err != nil {
		return nil, err
	}
	first := r.Revision == 1
	r.Revision += int64(t.last.Version)
	if !first {
		return t, t.late(annotation)
	}
	difference, err := g.difference(t.last, r.Values)
	switch {
	case err != nil:
		return nil, err
	case difference == "":
		t.stored, r.Revision = true, int64(t.last.Version)
	case t.mode == takeUnchanged:
		return nil, fmt.Errorf("version %d of the Helm release %s/%s has %s; to have it upgraded when it is taken over, set the annotation %s to %q",
			t.last.Version, r.Namespace, r.Name, difference, annotation, takeUpgrade)
	case t.mode == takeUpgrade:
		t.had, err = t.names()
	}
	return t, err
}

// annotationOf is the annotation of components that take over a release.
func annotationOf(ctx context.Context) (string, error) {
	operator, err := component.ReconcilerNameFromContext(ctx)
	return operator + "/" + api.SuffixHelmRelease, err
}

// late returns an error if the component has other objects than those of a release that it has not taken over yet.
func (t *taken) late(annotation string) error {
	last := t.secrets[len(t.secrets)-1]
	if t.mode != takeUnchanged || last.Labels[ownerLabel] != ownedByHelm || t.recorded[secretKey(last.Namespace, last.Name)] {
		return nil
	}
	return fmt.Errorf("the component was Ready before it took over version %d of the Helm release %s/%s, so that cannot stay unchanged; remove the annotation %s, or set it to %q",
		t.last.Version, t.namespace, t.name, annotation, takeUpgrade)
}

// complete returns an error if the last version that the component has recorded is gone. With the one before, it would
// go back to what that one has.
func (t *taken) complete(annotation string, last int) error {
	prefix := secretKey(t.namespace, secretPrefix+t.name+".v")
	for _, key := range slices.Sorted(maps.Keys(t.recorded)) {
		text, is := strings.CutPrefix(key, prefix)
		if version, err := strconv.Atoi(text); is && err == nil && version > last {
			return fmt.Errorf("the Secret %s/%s%s.v%d, in which Helm has stored the release, is gone; restore it, or remove the annotation %s to go on without the release",
				t.namespace, secretPrefix, t.name, version, annotation)
		}
	}
	return nil
}

// secretKey is the key of a Secret in an inventory.
func secretKey(namespace, name string) string {
	return api.InventoryItem{Kind: "Secret", Namespace: namespace, Name: name}.Key()
}

// find reads the release.
func (t *taken) find(ctx context.Context, annotation string) error {
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := component.LookupList(ctx, t.namespace, all); err != nil {
		return fmt.Errorf("find the Helm release %s/%s: %w", t.namespace, t.name, err)
	}
	for i := range all.Items {
		s := corev1.Secret{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(all.Items[i].Object, &s); err != nil {
			return err
		}
		if s.Type == releaseType && s.Labels["name"] == t.name && slices.Contains([]string{ownedByHelm, ownedByUs}, s.Labels[ownerLabel]) {
			t.secrets = append(t.secrets, s)
		}
	}
	if len(t.secrets) == 0 {
		return fmt.Errorf("there is no Helm release %s/%s to take over: no Secret has the type %s and the label name=%s; remove the annotation %s, and %s from objects that are left of it",
			t.namespace, t.name, releaseType, t.name, annotation, api.AnnotationHelmReleaseName)
	}
	version := func(s corev1.Secret) int {
		n, _ := strconv.Atoi(s.Labels["version"])
		return n
	}
	slices.SortFunc(t.secrets, func(a, b corev1.Secret) int { return cmp.Compare(version(a), version(b)) })
	last := t.secrets[len(t.secrets)-1]
	err := t.complete(annotation, version(last))
	if err != nil {
		return err
	}
	if t.last, err = readRelease(last.Data[releaseKey]); err != nil {
		return fmt.Errorf("the Secret %s/%s, which has version %d of the Helm release, cannot be read: %w; restore it, or remove the annotation %s",
			last.Namespace, last.Name, version(last), err, annotation)
	}
	if status := t.last.Info.Status; t.visible() && t.mode != giveBack && status != helmcommon.StatusDeployed {
		return fmt.Errorf("version %d of the Helm release %s/%s is not deployed, but %s; mend it with Helm before it is taken over",
			t.last.Version, t.namespace, t.name, status)
	}
	return nil
}

// visible reports whether Helm sees the release: it has not been taken over, or it is given back.
func (t *taken) visible() bool {
	return slices.ContainsFunc(t.secrets, func(s corev1.Secret) bool { return s.Labels[ownerLabel] == ownedByHelm })
}

// readRelease decodes what Helm has stored.
func readRelease(stored []byte) (*release.Release, error) {
	if len(stored) == 0 {
		return nil, fmt.Errorf("it has no data %q", releaseKey)
	}
	packed, err := base64.StdEncoding.DecodeString(string(stored))
	if err != nil {
		return nil, err
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(unpacked, largest+1))
	if err != nil {
		return nil, err
	}
	if len(text) > largest {
		return nil, fmt.Errorf("it has more than %d bytes", largest)
	}
	rel := &release.Release{}
	if err := json.Unmarshal(text, rel); err != nil {
		return nil, err
	}
	if rel.Info == nil || rel.Chart == nil || rel.Chart.Metadata == nil || rel.Version < 1 {
		return nil, errors.New("it lacks the chart, the version or the status")
	}
	return rel, nil
}

// difference says what a release has that is not as here. It names values, and does not show them. Empty means that both
// are the same.
func (g *Generator) difference(rel *release.Release, values map[string]any) (string, error) {
	here, ours, err := g.chart.effective(loader.MergeMaps(g.optionValues(), values))
	if err != nil {
		return "", err
	}
	_, theirs, err := g.chart.effective(rel.Config)
	if err != nil {
		return "", err
	}
	mine, other := here.Metadata, rel.Chart.Metadata
	if mine.Name != other.Name || mine.Version != other.Version {
		return fmt.Sprintf("the chart %s-%s, and the operator has %s-%s", other.Name, other.Version, mine.Name, mine.Version), nil
	}
	a, b := map[string]any{}, map[string]any{}
	for _, f := range rel.Chart.Templates {
		a[f.Name] = string(f.Data)
	}
	for _, f := range here.Templates {
		b[f.Name] = string(f.Data)
	}
	if files := differing(a, b); len(files) > 0 {
		return fmt.Sprintf("another chart %s-%s, in which %s differs", other.Name, other.Version, strings.Join(files, ", ")), nil
	}
	defaults, err := plain(rel.Chart.Values)
	if err != nil {
		return "", err
	}
	if paths := differing(defaults, here.Values); len(paths) > 0 {
		return fmt.Sprintf("another chart %s-%s, in which values.yaml differs at %s", other.Name, other.Version, strings.Join(paths, ", ")), nil
	}
	if paths := differing(theirs, ours); len(paths) > 0 {
		return "other values of " + strings.Join(paths, ", "), nil
	}
	return "", nil
}

// differing returns the paths at which two maps differ, in order.
func differing(a, b map[string]any) []string {
	var out []string
	keys := map[string]bool{}
	for _, m := range []map[string]any{a, b} {
		for key := range m {
			keys[key] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		x, isMap := a[key].(map[string]any)
		y, areMaps := b[key].(map[string]any)
		switch {
		case isMap && areMaps:
			for _, path := range differing(x, y) {
				out = append(out, key+"."+path)
			}
		case !reflect.DeepEqual(a[key], b[key]):
			out = append(out, key)
		}
	}
	return out
}

// files are what Helm has stored, as a chart would have rendered it.
func (t *taken) files() map[string]string {
	files := map[string]string{t.secrets[len(t.secrets)-1].Name: t.last.Manifest}
	for _, h := range t.last.Hooks {
		if h != nil {
			files[h.Path] += "\n---\n" + h.Manifest
		}
	}
	return files
}

// names are the keys of what is in the files.
func (t *taken) names() (map[string]bool, error) {
	o := &output{files: t.files()}
	names := map[string]bool{}
	for file := range o.files {
		documents, err := o.read(file)
		if err != nil {
			return nil, err
		}
		for _, d := range documents {
			objects, err := rendering.Each(d.object)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", o.where(d), err)
			}
			for _, u := range objects {
				names[t.nameOf(u)] = true
			}
		}
	}
	return names, nil
}

func (t *taken) nameOf(u *unstructured.Unstructured) string {
	return rendering.KeyOf(u.GroupVersionKind().GroupKind(), cmp.Or(u.GetNamespace(), t.namespace), u.GetName())
}

// gains reports whether an object is rendered that the release does not have.
func (t *taken) gains(u *unstructured.Unstructured) bool {
	return t != nil && t.had != nil && !t.had[t.nameOf(u)]
}

// addPlain adds what is no hook.
func (o *output) addPlain(ctx context.Context, plain []document) error {
	var mark func(*unstructured.Unstructured, *component.Dependent)
	if o.taken != nil {
		mark = o.taken.mark
	}
	for _, d := range plain {
		if err := o.add(d, mark); err != nil {
			return err
		}
	}
	return o.addLeft(ctx)
}

// mark writes on an object what Helm writes on all but hooks.
func (t *taken) mark(u *unstructured.Unstructured, _ *component.Dependent) {
	labels, annotations := u.GetLabels(), u.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[managerLabel] = "Helm"
	annotations[api.AnnotationHelmReleaseName], annotations[api.AnnotationHelmReleaseNamespace] = t.name, t.namespace
	u.SetLabels(labels)
	u.SetAnnotations(annotations)
}

// addLeft adds what the release has and the chart does not render any more, until it is the component's. Then it is
// pruned, as all else is that is not rendered.
func (o *output) addLeft(ctx context.Context) error {
	t := o.taken
	if t == nil || t.stored || t.mode == giveBack || !t.visible() {
		return nil
	}
	name := t.secrets[len(t.secrets)-1].Name
	o.files[name] = t.last.Manifest
	documents, err := o.read(name)
	if err != nil {
		return err
	}
	for _, d := range documents {
		objects, err := rendering.Each(d.object)
		if err != nil {
			return fmt.Errorf("%s: %w", o.where(d), err)
		}
		for _, u := range objects {
			left, err := t.leaves(ctx, o, u)
			if err == nil && left {
				err = o.add(document{d.file, d.text, u}, t.mark)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// leaves reports whether an object of the release is not rendered, and exists as Helm has left it.
func (t *taken) leaves(ctx context.Context, o *output, u *unstructured.Unstructured) (bool, error) {
	if o.has(u, t.namespace) {
		return false, nil
	}
	operator, err := component.ReconcilerNameFromContext(ctx)
	if err != nil {
		return false, err
	}
	live, err := t.live(ctx, u)
	if err != nil || live == nil {
		return false, err
	}
	annotations := live.GetAnnotations()
	return api.HelmReleaseOf(annotations) == t.namespace+"/"+t.name && annotations[operator+"/owner-id"] == "", nil
}

// live looks up an object of the release. It is nil if there is none.
func (t *taken) live(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(u.GroupVersionKind())
	err := component.Lookup(ctx, client.ObjectKey{Namespace: cmp.Or(u.GetNamespace(), t.namespace), Name: u.GetName()}, live)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, nil //nolint:nilnil // there is none
	case err != nil:
		return nil, fmt.Errorf("find the %s %s of the Helm release: %w", u.GetKind(), u.GetName(), err)
	}
	return live, nil
}

// adopt has hooks of the installation, which Helm does not write again, taken over as they are. People may have changed
// them since. They stay bare as long as they exist: a process that is killed may have taken one over without a record.
func (o *output) adopt(ctx context.Context, hooks []hook) error {
	if o.taken == nil {
		return nil
	}
	for i, h := range hooks {
		if h.isUpgrade() || h.runs() || h.purged() || h.object.IsList() {
			continue
		}
		live, err := o.taken.live(ctx, h.object)
		if err != nil {
			return err
		}
		if live != nil {
			bare := &unstructured.Unstructured{}
			bare.SetGroupVersionKind(h.object.GroupVersionKind())
			bare.SetNamespace(h.object.GetNamespace())
			bare.SetName(h.object.GetName())
			hooks[i].object, hooks[i].bare = bare, true
		}
	}
	return nil
}

// has reports whether an object is rendered, whether it names the namespace of the release or not.
func (o *output) has(u *unstructured.Unstructured, namespace string) bool {
	kind, in := u.GroupVersionKind().GroupKind(), u.GetNamespace()
	if in == "" || in == namespace {
		return o.objects[rendering.KeyOf(kind, "", u.GetName())]+o.objects[rendering.KeyOf(kind, namespace, u.GetName())] != ""
	}
	return o.objects[rendering.KeyOf(kind, in, u.GetName())] != ""
}

// addSecrets adds the Secrets of the release, after all else is ready. Helm finds them by the label of their owner. What
// they contain is not written.
func (o *output) addSecrets() {
	if o.taken == nil {
		return
	}
	owner, policy := ownedByUs, api.DeletePolicyDelete
	if o.taken.mode == giveBack {
		owner, policy = ownedByHelm, api.DeletePolicyOrphan
	}
	for _, s := range o.taken.secrets {
		o.set.Add(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "type": releaseType,
			"metadata": map[string]any{"namespace": s.Namespace, "name": s.Name, "labels": map[string]any{ownerLabel: owner}},
		}}).Wave(o.last + 1).Uncounted().Policies(api.Policies{AdoptionPolicy: api.AdoptionPolicyIfUnowned, UpdatePolicy: api.UpdatePolicySsaMerge, DeletePolicy: policy})
	}
}
