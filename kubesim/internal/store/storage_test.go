package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/kubernetes/scheme"
)

// shelf is the storage of one kind in one cluster.
type shelf struct {
	*testing.T
	*resource
	db  *DB
	ctx context.Context
	// decodes counts what the codec decoded.
	decodes *atomic.Int64
}

func newShelf(t *testing.T) shelf {
	t.Helper()
	var decodes atomic.Int64
	config := storagebackend.NewDefaultConfig("/registry", counting{scheme.Codecs.LegacyCodec(corev1.SchemeGroupVersion), &decodes})
	s, _, err := Decorate(config.ForResource(corev1.Resource("configmaps")), "/configmaps", nil,
		func() runtime.Object { return &corev1.ConfigMap{} }, func() runtime.Object { return &corev1.ConfigMapList{} }, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return shelf{t, s.(*resource), nil, nil, &decodes}.in(New())
}

// in returns the same storage in another cluster.
func (s shelf) in(db *DB) shelf {
	s.db, s.ctx = db, With(s.T.Context(), db)
	return s
}

type counting struct {
	runtime.Codec
	n *atomic.Int64
}

func (c counting) Decode(data []byte, gvk *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	c.n.Add(1)
	return c.Codec.Decode(data, gvk, into)
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "random", Labels: map[string]string{"is": value}},
		Data:       map[string]string{"value": value},
	}
}

func (s shelf) create(name, value string) *corev1.ConfigMap {
	s.Helper()
	out := &corev1.ConfigMap{}
	if err := s.Create(s.ctx, "/configmaps/"+name, configMap(name, value), out, 0); err != nil {
		s.Fatal(err)
	}
	return out
}

func (s shelf) update(name, value string) *corev1.ConfigMap {
	s.Helper()
	out := &corev1.ConfigMap{}
	if err := s.GuaranteedUpdate(s.ctx, "/configmaps/"+name, out, false, nil, set(value), nil); err != nil {
		s.Fatal(err)
	}
	return out
}

func set(value string) storage.UpdateFunc {
	return func(in runtime.Object, _ storage.ResponseMeta) (runtime.Object, *uint64, error) {
		m := in.(*corev1.ConfigMap)
		m.Labels, m.Data = map[string]string{"is": value}, map[string]string{"value": value}
		return m, nil, nil
	}
}

func (s shelf) delete(name string) *corev1.ConfigMap {
	s.Helper()
	out := &corev1.ConfigMap{}
	if err := s.Delete(s.ctx, "/configmaps/"+name, out, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
	return out
}

func (s shelf) get(name string) (*corev1.ConfigMap, error) {
	out := &corev1.ConfigMap{}
	return out, s.Get(s.ctx, "/configmaps/"+name, storage.GetOptions{}, out)
}

// brief is "name=value@revision".
func brief(m *corev1.ConfigMap) string {
	return fmt.Sprintf("%s=%s@%s", m.Name, m.Data["value"], m.ResourceVersion)
}

func want(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestCreate(t *testing.T) {
	s := newShelf(t)
	want(t, "first", "a=1@2", brief(s.create("a", "1")))
	want(t, "second", "b=1@3", brief(s.create("b", "1")))
	if err := s.Create(s.ctx, "/configmaps/a", configMap("a", "2"), nil, 0); !storage.IsExist(err) {
		t.Errorf("again: %v, want that it exists", err)
	}
	old := configMap("c", "1")
	old.ResourceVersion = "1"
	if err := s.Create(s.ctx, "/configmaps/c", old, nil, 0); !errors.Is(err, storage.ErrResourceVersionSetOnCreate) {
		t.Errorf("with a revision: %v", err)
	}
}

func TestEqualRunsMakeEqualObjects(t *testing.T) {
	run := func() []Stored {
		s := newShelf(t)
		a := s.create("a", "1")
		b := s.create("b", "1")
		if a.UID == b.UID || a.UID == "random" {
			t.Errorf("UIDs %q and %q must differ and not be random", a.UID, b.UID)
		}
		applied := &corev1.ConfigMap{}
		err := s.GuaranteedUpdate(s.ctx, "/configmaps/c", applied, true, nil,
			func(runtime.Object, storage.ResponseMeta) (runtime.Object, *uint64, error) {
				return configMap("c", "1"), nil, nil
			}, nil)
		if err != nil || applied.UID == "random" {
			t.Errorf("made by an update: UID %q, %v", applied.UID, err)
		}
		s.delete("a")
		if again := s.create("a", "1"); again.UID == a.UID {
			t.Errorf("a new object has the UID of one that is gone: %s", a.UID)
		}
		return s.db.Rows()
	}
	want(t, "rows", run(), run())
}

func TestUpdate(t *testing.T) {
	s := newShelf(t)
	made := s.create("a", "1")
	want(t, "update", "a=2@3", brief(s.update("a", "2")))
	want(t, "an update that changes nothing", "a=2@3", brief(s.update("a", "2")))
	want(t, "history", 2, len(s.db.History()))

	update := func(name string, ignoreNotFound bool, pre *storage.Preconditions, try storage.UpdateFunc) (string, error) {
		out := &corev1.ConfigMap{}
		err := s.GuaranteedUpdate(s.ctx, "/configmaps/"+name, out, ignoreNotFound, pre, try, nil)
		return brief(out), err
	}
	if _, err := update("b", false, nil, set("1")); !storage.IsNotFound(err) {
		t.Errorf("missing: %v, want not found", err)
	}
	created := func(runtime.Object, storage.ResponseMeta) (runtime.Object, *uint64, error) {
		return configMap("b", "1"), nil, nil
	}
	if got, err := update("b", true, nil, created); got != "b=1@4" || err != nil {
		t.Errorf("missing and made: %s, %v", got, err)
	}
	_, err := update("a", false, &storage.Preconditions{UID: new(types.UID("x"))}, set("3"))
	if !storage.IsInvalidObj(err) || !strings.Contains(err.Error(), "/registry/configmaps/a") {
		t.Errorf("other UID: %v", err)
	}
	_, err = update("a", false, &storage.Preconditions{ResourceVersion: new("2")}, set("3"))
	if !storage.IsInvalidObj(err) {
		t.Errorf("other revision: %v", err)
	}
	if got, err := update("a", false, &storage.Preconditions{UID: &made.UID, ResourceVersion: new("3")}, set("3")); got != "a=3@5" || err != nil {
		t.Errorf("right preconditions: %s, %v", got, err)
	}
	refused := errors.New("refused")
	if _, err := update("a", false, nil, func(runtime.Object, storage.ResponseMeta) (runtime.Object, *uint64, error) {
		return nil, nil, refused
	}); !errors.Is(err, refused) {
		t.Errorf("refused: %v", err)
	}
}

func TestUpdateBeginsAgainIfOvertaken(t *testing.T) {
	s := newShelf(t)
	s.create("a", "1")
	var saw []string
	out := &corev1.ConfigMap{}
	err := s.GuaranteedUpdate(s.ctx, "/configmaps/a", out, false, nil, func(in runtime.Object, _ storage.ResponseMeta) (runtime.Object, *uint64, error) {
		saw = append(saw, brief(in.(*corev1.ConfigMap)))
		if len(saw) == 1 {
			s.update("a", "other")
		}
		return set("mine")(in, storage.ResponseMeta{})
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "seen", []string{"a=1@2", "a=other@3"}, saw)
	want(t, "result", "a=mine@4", brief(out))
}

func TestDelete(t *testing.T) {
	s := newShelf(t)
	s.create("a", "1")
	remove := func(pre *storage.Preconditions, validate storage.ValidateObjectFunc) error {
		return s.Delete(s.ctx, "/configmaps/a", &corev1.ConfigMap{}, pre, validate, nil, storage.DeleteOptions{})
	}
	if err := remove(&storage.Preconditions{UID: new(types.UID("x"))}, storage.ValidateAllObjectFunc); !storage.IsInvalidObj(err) {
		t.Errorf("other UID: %v", err)
	}
	refused := errors.New("refused")
	if err := remove(nil, func(context.Context, runtime.Object) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("refused: %v", err)
	}
	want(t, "deleted, with the revision of the deletion", "a=1@3", brief(s.delete("a")))
	if err := remove(nil, storage.ValidateAllObjectFunc); !storage.IsNotFound(err) {
		t.Errorf("again: %v, want not found", err)
	}
}

func TestGet(t *testing.T) {
	s := newShelf(t)
	s.create("a", "1")
	get := func(name string, opts storage.GetOptions) (string, error) {
		out := &corev1.ConfigMap{}
		err := s.Get(s.ctx, "/configmaps/"+name, opts, out)
		return brief(out), err
	}
	for _, rv := range []string{"", "0", "1", "2"} {
		if got, err := get("a", storage.GetOptions{ResourceVersion: rv}); got != "a=1@2" || err != nil {
			t.Errorf("at least %q: %s, %v", rv, got, err)
		}
	}
	if _, err := get("a", storage.GetOptions{ResourceVersion: "3"}); !storage.IsTooLargeResourceVersion(err) {
		t.Errorf("future: %v", err)
	}
	if _, err := get("b", storage.GetOptions{}); !storage.IsNotFound(err) {
		t.Errorf("missing: %v", err)
	}
	if got, err := get("b", storage.GetOptions{IgnoreNotFound: true}); got != "=@" || err != nil {
		t.Errorf("missing, ignored: %s, %v", got, err)
	}
}

// readers share what was decoded, so one that changes its copy must change nothing else.
func TestDecodedOnceAndCopied(t *testing.T) {
	s := newShelf(t)
	s.create("a", "1")
	for range 3 {
		m, err := s.get("a")
		if err != nil {
			t.Fatal(err)
		}
		want(t, "read", "a=1@2", brief(m))
		m.Data["value"], m.Labels["is"] = "spoiled", "spoiled"
	}
	fork := s.in(s.db.Snapshot().Open())
	if m, err := fork.get("a"); err != nil || brief(m) != "a=1@2" {
		t.Errorf("read in a fork: %v, %v", brief(m), err)
	}
	want(t, "decodes", int64(1), s.decodes.Load())
}

func all() storage.SelectionPredicate {
	p := storage.Everything
	p.GetAttrs = func(obj runtime.Object) (labels.Set, fields.Set, error) {
		return obj.(*corev1.ConfigMap).Labels, nil, nil
	}
	return p
}

func labelled(value string) storage.SelectionPredicate {
	p := all()
	p.Label = labels.SelectorFromSet(labels.Set{"is": value})
	return p
}

func (s shelf) list(opts storage.ListOptions) (string, *corev1.ConfigMapList, error) {
	if opts.Predicate.Label == nil {
		limit, from := opts.Predicate.Limit, opts.Predicate.Continue
		opts.Predicate = all()
		opts.Predicate.Limit, opts.Predicate.Continue = limit, from
	}
	opts.Recursive = true
	l := &corev1.ConfigMapList{}
	err := s.GetList(s.ctx, "/configmaps", opts, l)
	var items []string
	for _, m := range l.Items {
		items = append(items, brief(&m))
	}
	text := strings.Join(items, " ") + " @" + l.ResourceVersion
	if l.RemainingItemCount != nil {
		text += fmt.Sprintf(" +%d", *l.RemainingItemCount)
	}
	return text, l, err
}

func TestList(t *testing.T) {
	s := newShelf(t)
	for _, name := range []string{"c", "a", "d", "b"} { // revisions 2 to 5
		s.create(name, "1")
	}
	s.update("a", "2") // 6
	s.delete("d")      // 7
	limited := func(n int64) storage.SelectionPredicate { return storage.SelectionPredicate{Limit: n} }
	odd := labelled("1")
	odd.Limit = 1
	tests := map[string]struct {
		why  string
		opts storage.ListOptions
		want string
	}{
		"all":                {"sorted by key", storage.ListOptions{}, "a=2@6 b=1@5 c=1@2 @7"},
		"at least":           {"what is newer will do", storage.ListOptions{ResourceVersion: "3"}, "a=2@6 b=1@5 c=1@2 @7"},
		"not older":          {"the same, said", storage.ListOptions{ResourceVersion: "3", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}, "a=2@6 b=1@5 c=1@2 @7"},
		"exact":              {"history", storage.ListOptions{ResourceVersion: "5", ResourceVersionMatch: metav1.ResourceVersionMatchExact}, "a=1@3 b=1@5 c=1@2 d=1@4 @5"},
		"limit":              {"what remains is counted", storage.ListOptions{Predicate: limited(2)}, "a=2@6 b=1@5 @7 +1"},
		"limit at any":       {"the watch cache ignores limits then", storage.ListOptions{ResourceVersion: "0", Predicate: limited(2)}, "a=2@6 b=1@5 c=1@2 @7"},
		"limit at revision":  {"a limit makes a revision exact", storage.ListOptions{ResourceVersion: "4", Predicate: limited(2)}, "a=1@3 c=1@2 @4 +1"},
		"selector":           {"others are left out", storage.ListOptions{Predicate: labelled("2")}, "a=2@6 @7"},
		"selector and limit": {"what remains is unknown", storage.ListOptions{Predicate: odd}, "b=1@5 @7"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, _, err := s.list(test.opts)
			if err != nil {
				t.Fatal(err)
			}
			want(t, test.why, test.want, got)
		})
	}
	one := &corev1.ConfigMapList{}
	if err := s.GetList(s.ctx, "/configmaps/b", storage.ListOptions{Predicate: all()}, one); err != nil || len(one.Items) != 1 {
		t.Errorf("of one key: %v, %v", one.Items, err)
	}
	none := &corev1.ConfigMapList{}
	if err := s.GetList(s.ctx, "/configmaps/x", storage.ListOptions{Predicate: all(), Recursive: true}, none); err != nil || none.Items == nil {
		t.Errorf("of nothing: %v, %v, want an empty list and not nil", none.Items, err)
	}
}

func TestPagesShowOneRevision(t *testing.T) {
	s := newShelf(t)
	for _, name := range []string{"a", "b", "c"} {
		s.create(name, "1")
	}
	next := func(from string) (string, string, error) {
		got, l, err := s.list(storage.ListOptions{Predicate: storage.SelectionPredicate{Limit: 1, Continue: from}})
		return got, l.Continue, err
	}
	first, token, err := next("")
	want(t, "first page", "a=1@2 @4 +2", first)
	if err != nil {
		t.Fatal(err)
	}
	s.update("b", "2")
	s.delete("c")
	second, last, err := next(token)
	want(t, "second page, as it was", "b=1@3 @4 +1", second)
	if err != nil {
		t.Fatal(err)
	}
	third, end, err := next(last)
	want(t, "third page, as it was", "c=1@4 @4", third)
	if err != nil || end != "" {
		t.Errorf("end: %q, %v", end, err)
	}
}

func TestListOfWhatIsNotThere(t *testing.T) {
	s := newShelf(t)
	s.create("a", "1")
	_, _, err := s.list(storage.ListOptions{ResourceVersion: "9"})
	if retry, ok := apierrors.SuggestsClientDelay(err); !storage.IsTooLargeResourceVersion(err) || !ok || retry != 1 {
		t.Errorf("future: %v, want too large and to try again in a second", err)
	}
	exactly := func(rv string) error {
		_, _, err := s.list(storage.ListOptions{ResourceVersion: rv, ResourceVersionMatch: metav1.ResourceVersionMatchExact})
		return err
	}
	if err := exactly("9"); !storage.IsTooLargeResourceVersion(err) {
		t.Errorf("exact future: %v", err)
	}
}

func TestTimeToLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		for i, name := range []string{"a", "b"} {
			if err := s.Create(s.ctx, "/configmaps/"+name, configMap(name, "1"), nil, uint64(60*(i+1))); err != nil {
				t.Fatal(err)
			}
		}
		s.create("c", "1")
		rest := func() string {
			got, _, err := s.list(storage.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		time.Sleep(59 * time.Second)
		want(t, "before", "a=1@2 b=1@3 c=1@4 @4", rest())
		time.Sleep(time.Second)
		want(t, "the first is over", "b=1@3 c=1@4 @5", rest())
		fork := s.in(s.db.Snapshot().Open())
		want(t, "an update without a time to live ends it", "b=2@6", brief(s.update("b", "2")))
		time.Sleep(time.Hour)
		want(t, "long after", "b=2@6 c=1@4 @6", rest())
		if _, err := fork.get("b"); !storage.IsNotFound(err) {
			t.Errorf("in a fork it ends too: %v", err)
		}
	})
}

func TestWorldsAreIndependent(t *testing.T) {
	one := newShelf(t)
	two := one.in(New())
	one.create("a", "1")
	if _, err := two.get("a"); !storage.IsNotFound(err) {
		t.Errorf("in another cluster: %v, want not found", err)
	}
	snapshot := one.db.Snapshot()
	one.update("a", "2")
	fork, twin := one.in(snapshot.Open()), one.in(snapshot.Open())
	want(t, "fork", "a=3@3", brief(fork.update("a", "3")))
	fork.create("b", "1")
	want(t, "twin", "a=4@3", brief(twin.update("a", "4")))
	for name, s := range map[string]struct {
		shelf
		want string
	}{"original": {one, "a=2@3 @3"}, "fork": {fork, "a=3@3 b=1@4 @4"}, "twin": {twin, "a=4@3 @3"}} {
		got, _, err := s.list(storage.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want(t, name, s.want, got)
	}
	want(t, "history of the fork", 3, len(fork.db.History()))
	want(t, "snapshot", int64(2), snapshot.Revision())
	want(t, "since", []string{"/configmaps/a", "/configmaps/b"}, keysOf(fork.db.Since(2)))
}

func TestForksWriteTheirOwnHistory(t *testing.T) {
	s := newShelf(t)
	for _, name := range []string{"a", "b", "c"} { // leaves room behind the history's end
		s.create(name, "1")
	}
	snapshot := s.db.Snapshot()
	one, two := s.in(snapshot.Open()), s.in(snapshot.Open())
	one.create("one", "1")
	two.create("two", "1")
	want(t, "one", []string{"/configmaps/one"}, keysOf(one.db.Since(4)))
	want(t, "two", []string{"/configmaps/two"}, keysOf(two.db.Since(4)))
}

func keysOf(changes []Change) (keys []string) {
	for _, c := range changes {
		keys = append(keys, c.Key)
	}
	return keys
}

func TestMemo(t *testing.T) {
	computed := 0
	names := NewMemo(func(rows []Stored) string {
		computed++
		var names []string
		for _, r := range rows {
			names = append(names, r.Key)
		}
		return strings.Join(names, " ")
	}, "/configmaps/a", "/configmaps/b")
	s := newShelf(t)
	s.create("b1", "1")
	s.create("c1", "1")
	s.create("a1", "1")
	want(t, "result", "/configmaps/a1 /configmaps/b1", names.Of(s.db))
	s.update("c1", "2")
	fork := s.in(s.db.Snapshot().Open())
	want(t, "after another change", "/configmaps/a1 /configmaps/b1", names.Of(s.db))
	want(t, "in a fork", "/configmaps/a1 /configmaps/b1", names.Of(fork.db))
	want(t, "computed", 1, computed)
	s.delete("a1")
	want(t, "after a change", "/configmaps/b1", names.Of(s.db))
	want(t, "in the fork still", "/configmaps/a1 /configmaps/b1", names.Of(fork.db))
	want(t, "computed again", 2, computed)
}

// TestHoldDeletes proves that what is written while a DELETE waits goes with the object, and that
// a DELETE which gives up removes nothing.
func TestHoldDeletes(t *testing.T) {
	s := newShelf(t)
	s.create("a", "1")
	gone := &corev1.ConfigMap{}
	remove := func(wait func(context.Context) error) error {
		return s.Delete(HoldDeletes(s.ctx, wait), "/configmaps/a", gone, &storage.Preconditions{}, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{})
	}
	given := errors.New("given up")
	if err := remove(func(context.Context) error { return given }); !errors.Is(err, given) {
		t.Errorf("a delete that gave up returned %v", err)
	}
	err := remove(func(ctx context.Context) error {
		return s.GuaranteedUpdate(ctx, "/configmaps/a", &corev1.ConfigMap{}, false, nil, storage.SimpleUpdate(func(o runtime.Object) (runtime.Object, error) {
			o.(*corev1.ConfigMap).Finalizers = []string{"late"}
			return o, nil
		}), nil)
	})
	if diff := cmp.Diff([]string{"late"}, gone.Finalizers); err != nil || diff != "" {
		t.Errorf("%v; finalizers of what went (-want +got):\n%s", err, diff)
	}
}
