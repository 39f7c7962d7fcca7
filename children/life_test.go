package children_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/children"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/testenv"
)

func secret() child {
	return children.Named("secret", func(p *probe.Probe) *corev1.Secret {
		return &corev1.Secret{Data: map[string][]byte{"size": {byte(p.Spec.Size)}}}
	})
}

// large reports whether a Probe is large.
func large(p *probe.Probe) bool { return p.Spec.Size > 1 }

// TestRestart: a new process sends nothing for children that are as they should be, but for Secrets, of which the cache
// may have nothing but metadata; it repairs what changed meanwhile.
func TestRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.strip = true
	set := func() *children.Set[*probe.Probe] { return children.Of(config1(), secret()) }
	w.start(set(), options{})
	p := w.ready(w.create("a", 1))
	w.stop()
	w.drain()
	w.requests.Reset()
	w.start(set(), options{})
	w.next()
	if sent := w.sent("configmaps"); len(sent) > 0 {
		t.Errorf("sent %v for a child that is as it should be", sent)
	}
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "a"}}
	w.patch(key, `{"data":{"size":"eHh4"}}`)
	testenv.Wait(t, w.admin, key, "the Secret to be repaired", func(s *corev1.Secret) bool { return string(s.Data["size"]) == "\x01" })
	w.stop()
	w.patch(w.child("a"), `{"data":{"size":"edited"}}`)
	w.patch(p, `{"spec":{"size":2}}`)
	w.start(set(), options{})
	testenv.Wait(t, w.admin, w.child("a"), "the new size", func(c *corev1.ConfigMap) bool { return c.Data["size"] == "xx" })
	testenv.Wait(t, w.admin, key, "the new size", func(s *corev1.Secret) bool { return string(s.Data["size"]) == "\x02" })
}

// TestWanted: children come and go with the spec; what is not a child stays.
func TestWanted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	renamed := children.Named("renamed", func(p *probe.Probe) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", p.Name, p.Spec.Size)}}
	})
	w.start(children.Of(renamed, children.Named("large", configOf("large")).When(large).Protected()), options{})
	p := w.ready(w.create("a", 1))
	testenv.Gone(t, w.admin, w.child("a-large"), "no child whose When is false")
	w.patch(p, `{"spec":{"size":2}}`)
	w.ready(p)
	testenv.Gone(t, w.admin, w.child("a-1"), "the child to go whose name is another one now")
	c := read(w, w.child("a-large"))
	copied := w.child("copy")
	copied.Labels, copied.Annotations, copied.OwnerReferences = c.Labels, c.Annotations, nil
	w.do(w.admin.Create(t.Context(), copied))
	w.patch(p, `{"spec":{"size":1}}`)
	testenv.Gone(t, w.admin, c, "the protected child to go that is not wanted")
	w.ready(p)
	read(w, copied) // with labels of a child and no owner reference, it is none
}

// TestElsewhere: children that garbage collection does not reach.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := testenv.Namespace(t, w.cfg)
	w.others = []string{other}
	far := children.Named("far", func(p *probe.Probe) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: other}, Data: map[string]string{"size": strings.Repeat("x", p.Spec.Size)}}
	}).Elsewhere()
	w.start(children.Of(far), options{})
	p := w.ready(w.create("a", 1))
	c := read(w, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "a"}})
	if len(c.OwnerReferences) > 0 || len(c.Finalizers) > 0 || !slices.Contains(p.Finalizers, finalizer) {
		t.Errorf("owner references %v and finalizers %v of the child, finalizers %v of the owner", c.OwnerReferences, c.Finalizers, p.Finalizers)
	}
	w.delete(c)
	c = testenv.Wait(t, w.admin, c, "it to be created again", func(now *corev1.ConfigMap) bool { return now.UID != c.UID })
	copied := c.DeepCopy()
	copied.ObjectMeta = metav1.ObjectMeta{Namespace: other, Name: "copy", Labels: c.Labels, Annotations: c.Annotations}
	w.do(w.admin.Create(t.Context(), copied))
	w.patch(c, `{"metadata":{"finalizers":["example.org/wait"]}}`)
	w.delete(p)
	testenv.Wait(t, w.admin, c.DeepCopy(), "the child to be deleted", func(c *corev1.ConfigMap) bool { return c.DeletionTimestamp != nil })
	read(w, p) // it waits
	w.patch(c, `{"metadata":{"finalizers":null}}`)
	testenv.Gone(t, w.admin, p, "the owner to be gone")
	testenv.Gone(t, w.admin, c, "the child to be gone")
	read(w, copied) // it is nobody's
}

// TestOrphans: what a process created whose owner another process had cleaned up meanwhile is released.
func TestOrphans(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(children.Of(config1().Protected()), options{})
	p := w.ready(w.create("a", 1))
	late := read(w, w.child("a"))
	w.delete(p)
	testenv.Gone(t, w.admin, p, "the owner to be gone")
	testenv.Gone(t, w.admin, late, "the child to be gone")
	late.ResourceVersion, late.UID, late.DeletionTimestamp = "", "", nil
	late.Finalizers = []string{finalizer}
	w.do(w.admin.Create(t.Context(), late)) // garbage collection deletes it, and the finalizer keeps it
	testenv.Gone(t, w.admin, late, "the orphan to be gone")

	p = w.ready(w.create("b", 1))
	w.stop()
	w.patch(p, `{"metadata":{"finalizers":null}}`)
	w.delete(p)
	c := testenv.Wait(t, w.admin, w.child("b"), "the child to be deleted", func(c *corev1.ConfigMap) bool { return c.DeletionTimestamp != nil })
	w.start(children.Of(config1().Protected()), options{})
	testenv.Gone(t, w.admin, c, "the child whose owner lost its finalizer by hand to be gone")
}

// TestUpgrade: a finalizer that is not needed any more goes, from children and owners, also from one that is being
// deleted.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(children.Of(config1().Protected()), options{})
	a, b := w.ready(w.create("a", 1)), w.ready(w.create("b", 1))
	w.stop()
	w.delete(b)
	w.start(children.Of(config1()), options{})
	testenv.Wait(t, w.admin, a, "the owner to lose it", func(p *probe.Probe) bool { return len(p.Finalizers) == 0 })
	testenv.Wait(t, w.admin, w.child("a"), "the child to lose it", func(c *corev1.ConfigMap) bool { return len(c.Finalizers) == 0 })
	testenv.Gone(t, w.admin, b, "the owner to go that was being deleted")
	testenv.Gone(t, w.admin, w.child("b"), "its child to go, from which nobody else would take the finalizer")
	w.delete(a)
	testenv.Gone(t, w.admin, w.child("a"), "the child to be gone")
}

// TestAdoption: what happens to an object that has the name of a child.
func TestAdoption(t *testing.T) {
	t.Parallel()
	holder := []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "holder", Controller: new(true)}}
	tests := map[string]struct {
		why    string
		policy api.AdoptionPolicy
		owned  bool
		fails  string
	}{
		"if unowned, unowned": {why: "nobody minds", policy: ""},
		"if unowned, owned":   {why: "it is somebody else's", policy: api.AdoptionPolicyIfUnowned, owned: true, fails: "belongs to ConfigMap holder"},
		"never":               {why: "the author said so", policy: api.AdoptionPolicyNever, fails: "was created by somebody else: delete or rename it"},
		"always":              {why: "the author said so", policy: api.AdoptionPolicyAlways, owned: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			existing := w.child("a")
			existing.Data = map[string]string{"size": "theirs", "more": "theirs"}
			if tt.owned {
				by := w.child("holder")
				w.do(w.admin.Create(t.Context(), by))
				existing.OwnerReferences = slices.Clone(holder)
				existing.OwnerReferences[0].UID = by.UID
			}
			w.do(w.admin.Create(t.Context(), existing))
			w.start(children.Of(config1().Adopt(tt.policy)), options{})
			p := w.create("a", 1)
			if tt.fails == "" {
				p = w.ready(p)
				if got := read(w, w.child("a")); got.Data["size"] != "x" || got.Data["more"] != "theirs" || len(controllers(got)) != 1 || controllers(got)[0] != string(p.UID) {
					t.Errorf("%s: %v, controllers %v", tt.why, got.Data, controllers(got))
				}
				return
			}
			p = w.reason(p, "ChildNotOurs")
			if got := read(w, w.child("a")); got.ResourceVersion != existing.ResourceVersion || !strings.Contains(p.Status.Message, tt.fails) {
				t.Errorf("%s: version %s, want %s; message %q, want %q", tt.why, got.ResourceVersion, existing.ResourceVersion, p.Status.Message, tt.fails)
			}
			w.drain()
			w.delete(existing)
			w.ready(p) // at once, not after the retry
		})
	}
}

// TestFight: somebody who undoes every repair is not answered as fast as that.
func TestFight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(children.Of(config1()), options{})
	w.ready(w.create("a", 1))
	w.next()
	for range 6 {
		w.patch(w.child("a"), `{"data":{"size":"edited"}}`)
		w.next()
	}
	if got := read(w, w.child("a")).Data["size"]; got != "edited" {
		t.Errorf("after five repairs, the sixth followed at once: %q", got)
	}
}

// TestSiblings: a child that fails does not keep others from being applied, and nothing is deleted.
func TestSiblings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	broken := children.Named("broken", func(p *probe.Probe) *corev1.ConfigMap {
		if large(p) {
			panic("no such size")
		}
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "broken"}}
	})
	small := children.Named("small", configOf("small")).When(func(p *probe.Probe) bool { return !large(p) })
	w.start(children.Of(broken, small, config1()), options{})
	p := w.ready(w.create("a", 1))
	w.patch(p, `{"spec":{"size":2}}`)
	p = w.reason(p, "ChildInvalid")
	if !strings.Contains(p.Status.Message, "no such size") {
		t.Errorf("message %q", p.Status.Message)
	}
	if got := read(w, w.child("a")).Data["size"]; got != "xx" {
		t.Errorf("the child beside is %q", got)
	}
	read(w, w.child("broken"))
	read(w, w.child("a-small")) // it may be what the broken one is called now
}

// tidier is a composer with something to undo.
type tidier struct {
	composer
	cleaned chan string
}

func (t tidier) Cleanup(_ context.Context, r *loop.Run[*probe.Probe]) loop.CleanupOutcome {
	t.cleaned <- r.Obj.Name
	return loop.CleanedUp()
}

func (tidier) OnError(_ context.Context, r *loop.Run[*probe.Probe], err error) loop.ErrorOutcome {
	r.Obj.Status.Note = err.Error()
	return loop.RetryError()
}

// TestAuthor: the author's own Cleanup and OnError are called, and its Cleanup is a reason for a finalizer.
func TestAuthor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	set := children.Of(config1().Adopt(api.AdoptionPolicyNever))
	author := tidier{composer{set, func(context.Context, *loop.Run[*probe.Probe]) {}}, make(chan string, 10)}
	w.do(w.admin.Create(t.Context(), w.child("b")))
	w.start(set, options{Reconciler: author})
	b := w.reason(w.create("b", 1), "ChildNotOurs")
	if !strings.Contains(b.Status.Note, "was created by somebody else") {
		t.Errorf("OnError left note %q", b.Status.Note)
	}
	a := w.ready(w.create("a", 1))
	if diff := cmp.Diff([]string{finalizer}, a.Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	w.delete(a)
	testenv.Gone(t, w.admin, a, "the owner to be gone")
	if got := <-author.cleaned; got != "a" {
		t.Errorf("cleaned up %s", got)
	}
}

// TestWrongWiring: what is wrong with a set is said when the controller is set up.
func TestWrongWiring(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		why  string
		set  *children.Set[*probe.Probe]
		want string
	}{
		"none":      {"nothing to do", children.Of[*probe.Probe](), "children.Of has no children; without any, use loop.New"},
		"no name":   {"it would have no label", children.Of(children.Named("", configOf(""))), `children.Named needs one, for example "config"`},
		"twice":     {"which is which", children.Of(config1(), config1()), `two children are named "config"; give one of them another name`},
		"nil":       {"nothing to call", children.Of(children.Named[*probe.Probe, *corev1.ConfigMap]("a", nil)), `child "a": children.Named needs a function that returns the object`},
		"untyped":   {"its kind is not known", children.Of(children.Named("a", func(*probe.Probe) *unstructured.Unstructured { return nil })), "its function must return a pointer to a type that the scheme knows"},
		"policy":    {"misspelt", children.Of(config1().Adopt("allways")), `adoption policy "allways" does not exist; use never, if-unowned or always`},
		"unreached": {"garbage collection", children.Of(children.Named("role", func(*probe.Probe) *rbacv1.ClusterRole { return nil })), `ClusterRole objects have no namespace and their owner has one, so garbage collection does not reach them: add .Elsewhere() to the child`},
	}
	w := newWorld(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := children.New(tt.set, options{}).SetupWithManager(w.manager())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: error %v, want %q", tt.why, err, tt.want)
			}
		})
	}
	ordinary := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })
	err := children.New(children.Of(config1()), options{Reconciler: loop.Wrap[*probe.Probe](ordinary)}).SetupWithManager(w.manager())
	if want := "a reconciler of loop.Wrap gets no loop.Run, which it needs here, for example to apply children; give it to loop.New"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("an ordinary reconciler: error %v, want %q", err, want)
	}
}

// TestInvalid: what is wrong with a child of one object shows in the status of that object.
func TestInvalid(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		why  string
		f    func(*probe.Probe) *corev1.ConfigMap
		want string
	}{
		"nil": {"a bug must delete nothing", func(*probe.Probe) *corev1.ConfigMap { return nil }, `child "a": its function returned nil; use children.Child.When for a child that need not exist`},
		"elsewhere": {"it would stay", func(*probe.Probe) *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}}
		}, "where garbage collection does not reach it: add .Elsewhere() to the child"},
		"controller": {"there can be one", func(*probe.Probe) *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: "A", Name: "a", UID: "a", Controller: new(true)}}}}
		}, "sets an owner reference with controller: true"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.start(children.Of(children.Named("a", tt.f)), options{})
			if p := w.reason(w.create("a", 1), "ChildInvalid"); !strings.Contains(p.Status.Message, tt.want) {
				t.Errorf("%s: message %q, want %q", tt.why, p.Status.Message, tt.want)
			}
		})
	}
}
