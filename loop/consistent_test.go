package loop_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/loop/looptest"
	"github.com/trimtab-dev/trimtab/testenv"
)

// laggingTest is a controller whose cache shows ConfigMaps late.
type laggingTest struct {
	*controllerTest
	*looptest.Lag
}

// lagging starts a controller of one worker. The client reads all forms of objects from the cache.
func lagging(t *testing.T, a *author, change ...func(*ctrl.Options)) laggingTest {
	t.Helper()
	l := &looptest.Lag{Resource: "configmaps"}
	w := laggingTest{newNamespaceTest(t, l.Wrap), l}
	t.Cleanup(l.Release)
	change = append([]func(*ctrl.Options){func(o *ctrl.Options) { o.Client.Cache = &client.CacheOptions{Unstructured: true} }}, change...)
	w.manage(loop.New(loop.Reconciler[*probe.Probe](a), options{Workers: 1, Trace: a.sink()}).SetupWithManager, change...)
	return w
}

var coreConfigMap = corev1.SchemeGroupVersion.WithKind("ConfigMap")

// forms are empty ConfigMaps in each form.
func forms() map[string]client.Object {
	u, m := &unstructured.Unstructured{}, &metav1.PartialObjectMetadata{}
	u.SetGroupVersionKind(coreConfigMap)
	m.SetGroupVersionKind(coreConfigMap)
	return map[string]client.Object{"typed": &corev1.ConfigMap{}, "unstructured": u, "metadata": m}
}

func lists() map[string]client.ObjectList {
	u, m := &unstructured.UnstructuredList{}, &metav1.PartialObjectMetadataList{}
	u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	return map[string]client.ObjectList{"typed": &corev1.ConfigMapList{}, "unstructured": u, "metadata": m}
}

func child(namespace string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "child"}}
}

// reads reports what reads of the child through c return that is older than version; empty: it is gone.
func reads(ctx context.Context, c client.Client, namespace, version string) error {
	var wrong []error
	key := client.ObjectKeyFromObject(child(namespace))
	for form, obj := range forms() {
		err := c.Get(ctx, key, obj)
		switch {
		case version == "" && !apierrors.IsNotFound(err):
			wrong = append(wrong, fmt.Errorf("%s: Get returned version %q, %w; it is deleted", form, obj.GetResourceVersion(), err))
		case version == "":
		case err != nil:
			wrong = append(wrong, fmt.Errorf("%s: Get: %w", form, err))
		case before(obj.GetResourceVersion(), version):
			wrong = append(wrong, fmt.Errorf("%s: Get returned version %s, %s was written", form, obj.GetResourceVersion(), version))
		}
		if err == nil && (obj.GetName() != "child" || form != "typed" && obj.GetObjectKind().GroupVersionKind() != coreConfigMap) {
			wrong = append(wrong, fmt.Errorf("%s: Get returned %s %q", form, obj.GetObjectKind().GroupVersionKind(), obj.GetName()))
		}
	}
	for form, list := range lists() {
		if err := c.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{"trimtab.dev/test": "child"}); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: List: %w", form, err))
			continue
		}
		found := ""
		_ = meta.EachListItem(list, func(o runtime.Object) error {
			if obj, err := meta.Accessor(o); err == nil && obj.GetName() == "child" {
				found = obj.GetResourceVersion()
			}
			return nil
		})
		if version == "" && found != "" || version != "" && (found == "" || before(found, version)) {
			wrong = append(wrong, fmt.Errorf("%s: List has version %q, %q was written", form, found, version))
		}
	}
	return errors.Join(wrong...)
}

func before(a, b string) bool {
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || c < 0
}

// writes are those of a ConfigMap with a label; each returns the version that it was told.
func writesOf(namespace string) []struct {
	name string
	do   func(context.Context, client.Client) (string, error)
} {
	label := func(value string) client.Patch {
		return client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"written":"`+value+`"}}}`))
	}
	patch := func(form string) func(context.Context, client.Client) (string, error) {
		return func(ctx context.Context, c client.Client) (string, error) {
			obj := forms()[form]
			obj.SetNamespace(namespace)
			obj.SetName("child")
			err := c.Patch(ctx, obj, label(form))
			return obj.GetResourceVersion(), err
		}
	}
	return []struct {
		name string
		do   func(context.Context, client.Client) (string, error)
	}{
		{"create", func(ctx context.Context, c client.Client) (string, error) {
			obj := child(namespace)
			obj.Labels = map[string]string{"trimtab.dev/test": "child"}
			err := c.Create(ctx, obj)
			return obj.ResourceVersion, err
		}},
		{"update", func(ctx context.Context, c client.Client) (string, error) {
			obj := child(namespace)
			obj.Labels = map[string]string{"trimtab.dev/test": "child"}
			obj.Data = map[string]string{"a": "b"}
			err := c.Update(ctx, obj)
			return obj.ResourceVersion, err
		}},
		{"patch typed", patch("typed")},
		{"patch unstructured", patch("unstructured")},
		{"patch metadata", patch("metadata")},
		{"apply", func(ctx context.Context, c client.Client) (string, error) {
			config := corev1apply.ConfigMap("child", namespace).WithData(map[string]string{"applied": "typed"})
			err := c.Apply(ctx, config, client.FieldOwner("test"))
			if err != nil {
				return "", err
			}
			return *config.ResourceVersion, nil
		}},
		{"apply unstructured", func(ctx context.Context, c client.Client) (string, error) {
			u := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"applied": "unstructured"}}}
			u.SetGroupVersionKind(coreConfigMap)
			u.SetNamespace(namespace)
			u.SetName("child")
			err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("test"))
			return u.GetResourceVersion(), err
		}},
		{"delete", func(ctx context.Context, c client.Client) (string, error) {
			return "", c.Delete(ctx, child(namespace))
		}},
		{"create again", func(ctx context.Context, c client.Client) (string, error) {
			obj := child(namespace)
			obj.Labels = map[string]string{"trimtab.dev/test": "child"}
			err := c.Create(ctx, obj)
			return obj.ResourceVersion, err
		}},
	}
}

// once runs f in the first pass over the Probe a, with its client, and returns what f did.
func once(f func(ctx context.Context, r *run) error) (*author, <-chan error) {
	result := make(chan error, 1)
	did := false
	return newAuthor(func(ctx context.Context, r *run) loop.Outcome {
		if !did {
			did = true
			result <- f(ctx, r)
		}
		return loop.Done()
	}), result
}

// TestConsistent: what a pass reads is never older than what was written for its object, though the cache shows nothing.
func TestConsistent(t *testing.T) {
	t.Parallel()
	t.Run("G1 a read in a pass returns what the pass wrote", func(t *testing.T) {
		t.Parallel()
		var w laggingTest
		a, result := once(func(ctx context.Context, r *run) error {
			if err := reads(ctx, r.Client(), r.Obj.Namespace, ""); err != nil {
				return err
			}
			var wrong []error
			w.Hold()
			for _, write := range writesOf(r.Obj.Namespace) {
				version, err := write.do(ctx, r.Client())
				if err != nil {
					return fmt.Errorf("%s: %w", write.name, err)
				}
				if err := reads(ctx, r.Client(), r.Obj.Namespace, version); err != nil {
					wrong = append(wrong, fmt.Errorf("%s: %w", write.name, err))
				}
			}
			return errors.Join(wrong...)
		})
		w = lagging(t, a)
		w.create("a")
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
	t.Run("G1 a status, and the object of the pass itself", func(t *testing.T) {
		t.Parallel()
		l := &looptest.Lag{Resource: "probes"}
		a, result := once(func(ctx context.Context, r *run) error {
			l.Hold()
			defer l.Release()
			c, key := r.Client(), client.ObjectKeyFromObject(r.Obj)
			own := &probe.Probe{}
			if err := c.Get(ctx, key, own); err != nil {
				return err
			}
			own.Status.Note = "mine"
			if err := c.Status().Update(ctx, own); err != nil {
				return err
			}
			again := &probe.Probe{}
			if err := c.Get(ctx, key, again); err != nil || again.Status.Note != "mine" {
				return fmt.Errorf("after a write of the status, Get returned %+v, %w", again.Status, err)
			}
			r.Obj.ResourceVersion = again.ResourceVersion
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"written":"yes"}}}`))
			if err := c.Patch(ctx, &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}, patch); err != nil {
				return err
			}
			if err := c.Get(ctx, key, again); err != nil || again.Labels["written"] != "yes" || again.Status.Note != "mine" {
				return fmt.Errorf("after a patch, Get returned %+v, %w", again, err)
			}
			return nil
		})
		w := newNamespaceTest(t, l.Wrap)
		w.start(a, options{})
		w.create("a")
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
	t.Run("G1 DeleteAllOf", func(t *testing.T) {
		t.Parallel()
		var w laggingTest
		a, result := once(func(ctx context.Context, r *run) error {
			for form, obj := range forms() {
				if !poll.Until(func() bool { return r.Client().Get(ctx, client.ObjectKeyFromObject(child(w.namespace)), obj) == nil }) {
					return fmt.Errorf("the cache does not show the child, %s", form)
				}
			}
			w.Hold()
			if err := r.Client().DeleteAllOf(ctx, child(""), client.InNamespace(w.namespace), client.MatchingLabels{"trimtab.dev/test": "child"}); err != nil {
				return err
			}
			return reads(ctx, r.Client(), w.namespace, "")
		})
		w = lagging(t, a)
		obj := child(w.namespace)
		obj.Labels = map[string]string{"trimtab.dev/test": "child"}
		if err := w.admin.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		w.create("a")
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
	t.Run("a dry run is no write", func(t *testing.T) {
		t.Parallel()
		a, result := once(func(ctx context.Context, r *run) error {
			obj := child(r.Obj.Namespace)
			if err := r.Client().Create(ctx, obj, client.DryRunAll); err != nil {
				return err
			}
			if err := r.Client().Get(ctx, client.ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) {
				return fmt.Errorf("what was not created was found: %w", err)
			}
			return nil
		})
		lagging(t, a).create("a")
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
	t.Run("a kind that is only written, or is read live, gets no informer and no second read", func(t *testing.T) {
		t.Parallel()
		a, result := once(func(ctx context.Context, r *run) error {
			obj := child(r.Obj.Namespace)
			return errors.Join(r.Client().Create(ctx, obj), r.Client().Get(ctx, client.ObjectKeyFromObject(obj), forms()["unstructured"]))
		})
		w := lagging(t, a, func(o *ctrl.Options) { o.Client.Cache.Unstructured = false })
		w.create("a")
		if err := <-result; err != nil {
			t.Error(err)
		}
		w.resize(2)
		w.next(a)
		w.next(a)
		var seen []string
		for _, r := range w.requests.Select(func(r testenv.Request) bool { return r.Resource == "configmaps" }) {
			seen = append(seen, r.Verb)
		}
		if fmt.Sprint(seen) != "[create get]" {
			t.Errorf("requests for ConfigMaps: %v", seen)
		}
	})
}

// live complains about reads past the cache.
func live(w laggingTest) error {
	all := w.requests.Select(func(r testenv.Request) bool { return r.Resource == "configmaps" && r.Verb == "get" })
	if len(all) > 0 {
		return fmt.Errorf("the cache shows the child, and it was read live: %v", all)
	}
	return nil
}

// TestConsistentPasses: the next pass over an object begins when the cache shows what the one before it wrote.
func TestConsistentPasses(t *testing.T) {
	t.Parallel()
	// marked makes a pass over another object, after which a pass that was due would have been made, by the one worker.
	marked := func(w laggingTest, passes <-chan string) {
		w.t.Helper()
		for range 2 { // in much less than the time after which the kind is read live
			w.patch("b", fmt.Sprintf(`{"spec":{"size":%d}}`, w.get("b").Spec.Size+1))
			if name := <-passes; name != "b" {
				w.t.Fatalf("%s had a pass although the cache does not show what the one before it wrote", name)
			}
		}
	}
	// each says what each pass over the Probe a does; b is another object.
	each := func(w *laggingTest, steps ...func(ctx context.Context, r *run) error) (a *author, passes chan string) {
		passes = make(chan string, 100)
		n := 0
		return newAuthor(func(ctx context.Context, r *run) loop.Outcome {
			if r.Obj.Name == "b" {
				passes <- "b"
				return loop.Done()
			}
			defer func() { passes <- "a" }()
			step := steps[min(n, len(steps)-1)]
			n++
			if err := step(ctx, r); err != nil {
				w.t.Errorf("pass %d: %v", n, err)
			}
			if n < len(steps) {
				return loop.After(time.Millisecond)
			}
			return loop.Done()
		}), passes
	}
	get := func(ctx context.Context, r *run) (*corev1.ConfigMap, error) {
		obj := child(r.Obj.Namespace)
		return obj, r.Client().Get(ctx, client.ObjectKeyFromObject(obj), obj)
	}
	t.Run("G2 a pass waits for what the one before it wrote", func(t *testing.T) {
		t.Parallel()
		var w laggingTest
		a, passes := each(&w, func(ctx context.Context, r *run) error {
			if _, err := get(ctx, r); !apierrors.IsNotFound(err) {
				return fmt.Errorf("before it is created, Get returned %w", err)
			}
			w.Hold()
			return r.Client().Create(ctx, child(r.Obj.Namespace))
		}, func(ctx context.Context, r *run) error {
			w.requests.Reset()
			if _, err := get(ctx, r); err != nil {
				return err
			}
			return live(w)
		})
		w = lagging(t, a)
		w.create("b")
		if name := <-passes; name != "b" {
			t.Fatal(name)
		}
		w.create("a")
		if name := <-passes; name != "a" {
			t.Fatal(name)
		}
		marked(w, passes)
		w.Release()
		if name := <-passes; name != "a" {
			t.Fatal(name)
		}
	})
	t.Run("G5 a deleted object is gone when the cache has none with its UID", func(t *testing.T) {
		t.Parallel()
		var w laggingTest
		var old types.UID
		a, passes := each(&w, func(ctx context.Context, r *run) error {
			obj := child(r.Obj.Namespace)
			if !poll.Until(func() bool { return r.Client().Get(ctx, client.ObjectKeyFromObject(obj), obj) == nil }) {
				return errors.New("the cache does not show the child")
			}
			old = obj.UID
			w.Hold()
			if err := r.Client().Delete(ctx, obj); err != nil {
				return err
			}
			if _, err := get(ctx, r); !apierrors.IsNotFound(err) {
				return fmt.Errorf("after its deletion, Get returned %w", err)
			}
			return nil
		}, func(ctx context.Context, r *run) error {
			w.requests.Reset()
			if obj, err := get(ctx, r); err != nil || obj.UID == old {
				return fmt.Errorf("Get returned the old object %t, %w; want its namesake", obj.UID == old, err)
			}
			return live(w)
		})
		w = lagging(t, a)
		w.create("b")
		if name := <-passes; name != "b" {
			t.Fatal(name)
		}
		if err := w.admin.Create(t.Context(), child(w.namespace)); err != nil {
			t.Fatal(err)
		}
		w.create("a")
		if name := <-passes; name != "a" {
			t.Fatal(name)
		}
		if err := w.admin.Create(t.Context(), child(w.namespace)); err != nil { // another of the same name
			t.Fatal(err)
		}
		marked(w, passes)
		w.Release()
		if name := <-passes; name != "a" {
			t.Fatal(name)
		}
	})
	t.Run("G5 one that waits for finalizers of others is known to be on its way", func(t *testing.T) {
		t.Parallel()
		var w laggingTest
		a, passes := each(&w, func(ctx context.Context, r *run) error {
			obj := child(r.Obj.Namespace)
			if !poll.Until(func() bool { return r.Client().Get(ctx, client.ObjectKeyFromObject(obj), obj) == nil }) {
				return errors.New("the cache does not show the child")
			}
			w.Hold()
			defer w.Release()
			if err := r.Client().Delete(ctx, obj); err != nil {
				return err
			}
			if obj, err := get(ctx, r); err != nil || obj.DeletionTimestamp.IsZero() {
				return fmt.Errorf("after its deletion, Get returned a deletion at %s, %w", obj.DeletionTimestamp, err)
			}
			return nil
		}, func(ctx context.Context, r *run) error {
			w.requests.Reset()
			if obj, err := get(ctx, r); err != nil || obj.DeletionTimestamp.IsZero() {
				return fmt.Errorf("the next pass sees a deletion at %s, %w", obj.DeletionTimestamp, err)
			}
			return live(w)
		})
		w = lagging(t, a)
		obj := child(w.namespace)
		obj.Finalizers = []string{"example.org/hold"}
		if err := w.admin.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		w.create("a")
		for range 2 {
			if name := <-passes; name != "a" {
				t.Fatal(name)
			}
		}
		if err := w.admin.Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
			t.Fatal(err)
		}
	})
}
