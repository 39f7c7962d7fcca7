package helm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	release "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/testenv"
)

// released makes the objects of a version of a release, and the Secret in which Helm stores it.
func (s *site) released(version int, data []byte, names ...string) {
	s.t.Helper()
	objects := []client.Object{secretOf(s.namespace, version, data)}
	for _, name := range names {
		m := &corev1.ConfigMap{ObjectMeta: s.named(name), Data: map[string]string{"value": "1"}}
		m.Labels = map[string]string{"app.kubernetes.io/managed-by": "Helm"}
		m.Annotations = map[string]string{api.AnnotationHelmReleaseName: "a", api.AnnotationHelmReleaseNamespace: s.namespace}
		objects = append(objects, m)
	}
	for _, o := range objects {
		if err := s.admin.Create(s.t.Context(), o, client.FieldOwner("helm")); err != nil {
			s.t.Fatal(err)
		}
	}
}

// annotate sets the annotation about releases.
func (s *site) annotate(value string) {
	s.t.Helper()
	s.patch(s.product(), `{"metadata":{"annotations":{"`+s.operator+"/"+api.SuffixHelmRelease+`":"`+value+`"}}}`)
}

// refuses waits for a message and checks that nothing was written.
func (s *site) refuses(text string) {
	s.t.Helper()
	s.says(text)
	if w := s.written("configmaps", "secrets", "jobs", "clusterroles"); len(w) > 0 {
		s.t.Errorf("it was written: %v", w)
	}
}

func single() map[string]string {
	return map[string]string{"values.yaml": "a: 1\n", "templates/all.yaml": configMap("plain", "")}
}

// TestTakeoverIsLate: a component that has objects of its own cannot take over a release as it is.
func TestTakeoverIsLate(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start(single())
	s.create(`{"a": 5}`)
	s.ready()
	s.released(1, stored(t, single(), `{}`, func(r *release.Release) { r.Manifest += configMap("other", "") }), "other")
	s.requests.Reset()
	s.annotate("unchanged")
	s.refuses(`the component was Ready before it took over version 1 of the Helm release ` + s.namespace + `/a, so that cannot stay unchanged; remove the annotation`)
}

// TestTakeoverIsNotAskedFor: no hook runs and nothing is created before the first object that is the release's.
func TestTakeoverIsNotAskedFor(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.released(1, stored(t, single(), `{}`, nil), "plain")
	files := single()
	files["templates/a.yaml"] = configMap("brandnew", "") + job("early", "pre-install", "")
	s.start(files)
	s.create(`{}`)
	s.refuses("the ConfigMap " + s.namespace + "/plain belongs to the Helm release " + s.namespace + "/a; to take it over, set the annotation")
}

// TestTakeoverIsReturned: when Helm sees its release, the component can be deleted, and no hook runs.
func TestTakeoverIsReturned(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.grace = 0 // the default: the Secret with the hooks stays for a while
	files := parting()
	files["values.yaml"] = "a: 1\n"
	s.released(1, stored(t, files, `{}`, func(r *release.Release) {
		r.Hooks = []*release.Hook{{Path: "hooks.yaml", Manifest: job("clean", "pre-delete", "")}}
	}), "plain")
	s.start(files)
	s.createAs("unchanged", `{}`)
	s.ready()
	s.told("HelmReleaseTakenOver", "version 1 of the Helm release "+s.namespace+"/a belongs to the component")
	if err := s.admin.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "a-delete-hooks"}, &corev1.Secret{}); err != nil {
		t.Fatal("no hook would run anyway:", err)
	}
	s.start(files) // this operator takes nothing over
	s.requests.Reset()
	s.annotate("return")
	testenv.Wait(t, s.admin, secretOf(s.namespace, 1, nil), "Helm to see it", func(x *corev1.Secret) bool { return x.Labels["owner"] == "helm" })
	s.told("HelmReleaseReturned", "version 1 of the Helm release "+s.namespace+"/a is Helm's again; the component can be deleted")
	s.passes("1")
	s.remove()
	s.stop() // it sends all events
	if diff := cmp.Diff(map[string]int{"HelmReleaseTakenOver": 1, "HelmReleaseReturned": 1}, s.events("HelmRelease")); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if w := s.written("jobs"); len(w) > 0 {
		t.Errorf("hooks ran: %v", w)
	}
	if err := s.admin.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "plain"}, &corev1.ConfigMap{}); err != nil {
		t.Error(err)
	}
}

// told waits for an event about the component.
func (s *site) told(reason, note string) {
	s.t.Helper()
	if !poll.Until(func() bool {
		return slices.ContainsFunc(s.recorded(), func(e eventsv1.Event) bool {
			return e.Reason == reason && e.Type == corev1.EventTypeNormal && e.Regarding.Name == "a" && strings.Contains(e.Note, note)
		})
	}) {
		s.t.Fatalf("no event %s with the note %s", reason, note)
	}
}

// events counts the events whose reason has a prefix.
func (s *site) events(prefix string) map[string]int {
	s.t.Helper()
	count := map[string]int{}
	for _, e := range s.recorded() {
		if strings.HasPrefix(e.Reason, prefix) {
			count[e.Reason]++
			if e.Series != nil {
				count[e.Reason] += int(e.Series.Count) - 1
			}
		}
	}
	return count
}

func (s *site) recorded() []eventsv1.Event {
	s.t.Helper()
	all := &eventsv1.EventList{}
	if err := s.admin.List(s.t.Context(), all, client.InNamespace(s.namespace)); err != nil {
		s.t.Fatal(err)
	}
	return all.Items
}

// TestTakeoverLosesMost: what an upgrade adds, and the Secrets of the release, make up for nothing that it would delete.
func TestTakeoverLosesMost(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.guarded = true
	s.released(1, stored(t, single(), `{}`, func(r *release.Release) {
		r.Chart.Metadata.Version = "0.9.0"
		r.Manifest += configMap("one", "") + configMap("two", "")
	}), "plain", "one", "two")
	files := single()
	files["templates/new.yaml"] = configMap("three", "") + configMap("four", "") + configMap("five", "") + strings.ReplaceAll(configMap("six", ""), ".Values.a", "randAlpha 5")
	s.start(files)
	s.createAs("upgrade", `{}`)
	p := s.says("2 of 9 dependents are no longer rendered, and are kept; set " + s.operator + "/allow-prune: ")
	for _, name := range []string{"one", "two", "five"} {
		if err := s.admin.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, &corev1.ConfigMap{}); err != nil {
			t.Error(err)
		}
	}
	s.patch(s.product(), fmt.Sprintf(`{"metadata":{"annotations":{"%s/allow-prune":"%d"}}}`, s.operator, p.Generation))
	testenv.Gone(t, s.admin, &corev1.ConfigMap{ObjectMeta: s.named("two")}, "what may be deleted")
	s.ready()
}

// TestTakeoverLosesTheRelease: without the version that it took over, a component does not go back to the one before.
func TestTakeoverLosesTheRelease(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for version := 1; version <= 2; version++ {
		drawn := fmt.Sprintf("drawn%d", version)
		names := []string{"plain", drawn}
		if version == 1 { // Helm has deleted what only the first version has
			names = nil
		}
		s.released(version, stored(t, single(), `{}`, func(r *release.Release) {
			r.Version = version
			r.Manifest += configMap(drawn, "")
		}), names...)
	}
	s.start(single())
	s.createAs("unchanged", `{}`)
	s.ready()
	s.told("HelmReleaseTakenOver", "version 2 of the Helm release "+s.namespace+"/a belongs to the component") // the Secrets come last
	s.requests.Reset()
	if err := s.admin.Delete(t.Context(), secretOf(s.namespace, 2, nil)); err != nil {
		t.Fatal(err)
	}
	s.refuses("the Secret " + s.namespace + "/sh.helm.release.v1.a.v2, in which Helm has stored the release, is gone; restore it, or remove the annotation")
}

// TestTakeoverCreatesNothing: what a release stores is created only if its chart has it. Whoever may write the Secret may
// not have the operator create what he likes.
func TestTakeoverCreatesNothing(t *testing.T) {
	t.Parallel()
	role := func(name, hook string) string {
		return fmt.Sprintf("---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: %s, annotations: {%s}}\nrules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]\n", name, hook)
	}
	for name, change := range map[string]func(r *release.Release, name string){
		"an object": func(r *release.Release, name string) { r.Manifest += role(name, "") },
		"a hook": func(r *release.Release, name string) {
			r.Hooks = []*release.Hook{{Path: "hooks.yaml", Manifest: role(name, "helm.sh/hook: pre-delete")}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			forged := "forged-" + s.namespace
			s.released(1, stored(t, single(), `{}`, func(r *release.Release) { change(r, forged) }), "plain")
			s.start(single())
			s.createAs("unchanged", `{}`)
			s.refuses("has the ClusterRole " + forged + ", which neither exists as its own nor is in the chart; mend")
			r := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: forged}}
			if err := s.admin.Get(t.Context(), client.ObjectKeyFromObject(r), r); !apierrors.IsNotFound(err) {
				t.Errorf("the role: %v", err)
			}
		})
	}
}

// TestTakeoverKeepsWhatWasDrawn: names that the chart draws are the release's as long as the objects exist.
func TestTakeoverKeepsWhatWasDrawn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	files := single()
	files["templates/drawn.yaml"] = strings.Replace(configMap("NAME", ""), "NAME", `drawn-{{ randAlphaNum 9 | lower }}`, 1)
	s.released(1, stored(t, files, `{}`, func(r *release.Release) { r.Manifest = configMap("plain", "") + configMap("drawn-abc", "") }), "plain", "drawn-abc")
	s.start(files)
	s.createAs("unchanged", `{}`)
	s.ready()
	written := s.written("configmaps")
	slices.Sort(written)
	if diff := cmp.Diff([]string{"apply drawn-abc", "apply plain"}, slices.Compact(written)); diff != "" {
		t.Errorf("what was applied (-want +got):\n%s", diff)
	}
}
