package component_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/internal/manifest"
	"github.com/trimtab-dev/trimtab/testenv"
)

// everyday is a manifest as people have it, and what happens to it. docs/everyday.md lists them.
//
// In manifests, $NS is the namespace of the component, and $OP the name of the operator.
type everyday struct {
	why string
	// theirs are manifests that others apply before, as the field manager kubectl-client-side-apply.
	theirs string
	// before is done after that.
	before func(*bench)
	// steps are the manifests of the component, one after the other.
	steps []everyStep
	// replaced are the objects that are created again on the way, as Kind/name. All others keep their UID.
	replaced []string
	// leaving is done while the component is being deleted. The component need not wait for anything if it is nil.
	leaving func(*bench)
}

// everyStep is one state of the manifests.
type everyStep struct {
	manifest string
	// during is done before the component settles.
	during func(*bench)
	// says are parts of the message of a component that is not ready with these manifests. Nil: it becomes Ready.
	says []string
	// waits: it is Processing then, not in Error.
	waits bool
	// then is done when the component has settled. Nothing is written after that, except in answer to it.
	then func(*bench)
}

// TestEveryday installs manifests, changes them and deletes them. A component that is ready writes nothing. With -short
// and under the race detector it installs every sixth of them.
func TestEveryday(t *testing.T) {
	t.Parallel()
	all := map[string]everyday{}
	for _, group := range []map[string]everyday{everydayWorkloads(), everydayObjects(), everydayForms(), everydayOthers()} {
		maps.Copy(all, group)
	}
	for i, name := range slices.Sorted(maps.Keys(all)) {
		if (testing.Short() || racing) && i%6 != 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all[name].play(t)
		})
	}
}

func (e everyday) play(t *testing.T) {
	t.Helper()
	b := newBench(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s; the operator wrote %v", e.why, b.requests.Select(testenv.Request.IsWrite))
		}
	})
	theirs := b.manifests(e.theirs)
	for _, o := range theirs {
		if err := b.as("kubectl-client-side-apply").Create(t.Context(), b.placed(o)); err != nil {
			t.Fatal(e.why, err)
		}
	}
	if e.before != nil {
		e.before(b)
	}
	ours := map[string]*unstructured.Unstructured{}
	uids := map[string]types.UID{}
	for i, step := range e.steps {
		objects := b.manifests(step.manifest)
		if i == 0 {
			b.create(asObjects(objects)...)
		} else {
			b.change(asObjects(objects)...)
		}
		b.arrives(step)
		for _, o := range unlisted(objects) {
			ours[everyKey(o)] = o
			if uid := b.uidOf(o); uids[everyKey(o)] == "" {
				uids[everyKey(o)] = uid
			}
		}
	}
	for key, before := range uids {
		after := b.uidOf(ours[key])
		if again := after != before && after != "" && before != ""; again != slices.Contains(e.replaced, key) {
			t.Errorf("%s: %s has UID %s, and had %s", e.why, key, after, before)
		}
	}
	b.delete()
	if e.leaving != nil {
		e.leaving(b)
	}
	b.gone()
	for _, key := range slices.Sorted(maps.Keys(ours)) {
		if o := b.placed(ours[key]); o.GetName() != "" && b.served(o) {
			testenv.Gone(t, b.admin, o, "deleted with the component")
		}
	}
	for _, o := range theirs {
		if ours[everyKey(o)] == nil && o.GetNamespace() == "" && b.uidOf(o) == "" && o.GetKind() != "Namespace" {
			t.Errorf("%s: %s of others is gone", e.why, everyKey(o))
		}
	}
}

// arrives waits until a component is ready or says what it lacks.
func (b *bench) arrives(s everyStep) {
	b.t.Helper()
	if s.during != nil {
		s.during(b)
	}
	if s.says != nil {
		parts := make([]string, len(s.says))
		for i, part := range s.says {
			parts[i] = b.filled(part)
		}
		state := component.StateError
		if s.waits {
			state = component.StateProcessing
		}
		b.await(state+" with "+strings.Join(parts, ", "), func(o *bundle.Bundle) bool {
			return o.Status.ObservedGeneration == o.Generation && o.Status.State == state && containsAll(o.Status.Message, parts)
		})
	} else {
		b.ready()
		b.rests()
	}
	if s.then != nil {
		s.then(b)
		if s.says == nil {
			b.ready()
			b.rests()
		}
	}
}

// rests fails the test unless a component that is ready is left in peace: passes that are asked for write its
// status and nothing else. The long form waits for a minute as well.
func (b *bench) rests() {
	b.t.Helper()
	within(b.t, "a status that is not written any more", func() bool { // controllers may still be at work
		b.requests.Reset()
		b.fence()
		b.fence()
		b.untouched()
		return b.t.Failed() || b.sent().Component == 2*fence
	})
	if deep() {
		minute := time.NewTimer(time.Minute)
		defer minute.Stop()
		<-minute.C
		b.untouched()
	}
}

// filled puts the names of the bench into a text.
func (b *bench) filled(text string) string {
	return strings.NewReplacer("$NS", b.namespace, "$OP", b.operator).Replace(text)
}

// manifests reads manifests.
func (b *bench) manifests(text string) []*unstructured.Unstructured {
	b.t.Helper()
	var all []*unstructured.Unstructured
	err := manifest.Split([]byte(b.filled(text)), func(document []byte) error {
		u := &unstructured.Unstructured{}
		data, err := yaml.YAMLToJSON(document)
		if err != nil || string(data) == "null" {
			return err
		}
		all = append(all, u)
		return json.Unmarshal(data, &u.Object)
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return all
}

func asObjects(list []*unstructured.Unstructured) []client.Object {
	objects := make([]client.Object, len(list))
	for i, o := range list {
		objects[i] = o
	}
	return objects
}

// unlisted are objects in place of lists of them.
func unlisted(list []*unstructured.Unstructured) (all []*unstructured.Unstructured) {
	for _, o := range list {
		if !o.IsList() {
			all = append(all, o)
			continue
		}
		_ = o.EachListItem(func(item runtime.Object) error {
			u, _ := item.(*unstructured.Unstructured)
			if u.GetKind() == "" {
				u.SetAPIVersion(o.GetAPIVersion())
				u.SetKind(strings.TrimSuffix(o.GetKind(), "List"))
			}
			all = append(all, unlisted([]*unstructured.Unstructured{u})...)
			return nil
		})
	}
	return all
}

func everyKey(o *unstructured.Unstructured) string { return o.GetKind() + "/" + o.GetName() }

// placed is a copy of an object where the component has it.
func (b *bench) placed(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	switch kind := o.GetKind(); {
	case strings.HasPrefix(kind, "Cluster"), slices.Contains([]string{
		"CustomResourceDefinition", "MutatingWebhookConfiguration", "Namespace", "PersistentVolume", "StorageClass",
	}, kind):
		o.SetNamespace("")
	case o.GetNamespace() == "":
		o.SetNamespace(b.namespace)
	}
	return o
}

// served reports whether the API server has the kind of an object.
func (b *bench) served(o *unstructured.Unstructured) bool {
	b.t.Helper()
	gvk := o.GroupVersionKind()
	_, err := b.admin.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil && !meta.IsNoMatchError(err) {
		b.t.Fatal(err)
	}
	return err == nil
}

// now is an object as the API server has it, or nil.
func (b *bench) now(o *unstructured.Unstructured) *unstructured.Unstructured {
	b.t.Helper()
	live := b.placed(o)
	err := b.admin.Get(b.t.Context(), client.ObjectKeyFromObject(live), live)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return live
}

// uidOf is the UID of an object, and empty if there is none.
func (b *bench) uidOf(o *unstructured.Unstructured) types.UID {
	b.t.Helper()
	if o.GetName() == "" {
		return ""
	}
	if live := b.now(o); live != nil {
		return live.GetUID()
	}
	return ""
}

// edited is a manifest in which texts are replaced by others. Each of them must be there.
func edited(text string, pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			panic("no " + pairs[i] + " in" + text)
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}

// annotatedWith is a manifest with an annotation of the operator. Its metadata must be a map on one line.
func annotatedWith(text, annotation, value string) string {
	const begin = "\nmetadata: {"
	return edited(text, begin, begin+"annotations: {$OP/"+annotation+": \""+value+"\"}, ")
}
