package component_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/node"
	"github.com/trimtab-dev/trimtab/testenv"
)

// TestNodeIsCreatedAgain: an external resource that was deleted behind the operator's back is created again, and
// that is recorded before.
func TestNodeIsCreatedAgain(t *testing.T) {
	t.Parallel()
	v := &vendor{things: map[string]sold{}}
	b := newBench(t, selling(v))
	b.create(database("db", 3), configMap("a", "1"))
	b.ready()
	var recorded []string
	v.with(func() {
		clear(v.things)
		v.called = func(call string) error {
			if strings.HasPrefix(call, "create") {
				obj := &bundle.Bundle{}
				if err := b.admin.Get(t.Context(), types.NamespacedName{Namespace: b.namespace, Name: "a"}, obj); err != nil {
					return err
				}
				for _, item := range obj.Status.Inventory {
					if bytes.Contains(item.Record, []byte(`\"inc\":2`)) {
						recorded = append(recorded, item.Name)
					}
				}
			}
			return nil
		}
	})
	b.fence()
	b.await("to have it again", func(o *bundle.Bundle) bool { return isReady(o) && len(v.names()) == 1 })
	if diff := cmp.Diff([]string{"db"}, recorded); diff != "" {
		t.Errorf("what is recorded when it is created again (-want +got):\n%s", diff)
	}
	b.delete()
	b.gone()
	if left := v.names(); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
}

// TestNodeStays: an external resource with the policy orphan stays.
func TestNodeStays(t *testing.T) {
	t.Parallel()
	v := &vendor{things: map[string]sold{}}
	b := newBench(t, selling(v))
	kept := database("kept", 1)
	metav1.SetMetaDataAnnotation(&kept.ObjectMeta, b.operator+"/delete-policy", "orphan")
	b.create(kept, database("db", 3))
	b.ready()
	b.delete()
	b.gone()
	if diff := cmp.Diff([]string{b.namespace + ".kept"}, v.names()); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}

// TestNodeOfALostInventory: an external resource is found again although nothing records it.
func TestNodeOfALostInventory(t *testing.T) {
	t.Parallel()
	v := &vendor{things: map[string]sold{}}
	b := newBench(t, selling(v))
	b.create(database("db", 3))
	b.ready()
	b.loseStatus()
	b.start()
	b.ready()
	b.loseStatus()
	b.delete()
	b.start()
	b.gone()
	name := b.namespace + ".db"
	if diff := cmp.Diff([]string{"create " + name, "delete " + name}, v.calls("create", "update", "delete")); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// loseStatus stops the operator and removes the status of the component "a".
func (b *bench) loseStatus() {
	b.t.Helper()
	b.stop()
	obj := &bundle.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "a"}}
	if err := b.admin.Status().Patch(b.t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(`{"status":null}`))); err != nil {
		b.t.Fatal(err)
	}
}

// TestModesOfNodes: a mode keeps external resources from being changed.
func TestModesOfNodes(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"detect-only", "suspended"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			v := &vendor{things: map[string]sold{}}
			b := newBench(t, selling(v))
			b.create(database("db", 3), configMap("a", "1"))
			b.ready()
			b.patch("bundles.trimtab.dev/v1", "Bundle", "a", fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, b.operator+"/mode", mode))
			name := b.namespace + ".db"
			v.with(func() { v.things[name] = sold{size: 1, tags: v.things[name].tags} })
			b.fence()
			v.with(func() {
				if got := v.things[name].size; got != 1 {
					t.Errorf("size is %d, want 1, as somebody else set it", got)
				}
			})
			b.change(configMap("a", "1"))
			b.await("to say that it stays", func(o *bundle.Bundle) bool {
				return strings.Contains(o.Status.Message, "Thing "+b.namespace+"/db: is not ") && strings.Contains(o.Status.Message, " in mode "+mode)
			})
			b.fence()
			if got := v.calls("delete"); len(got) > 0 {
				t.Errorf("the operator called %q", got)
			}
			b.change(database("db", 3), configMap("a", "1"))
			b.patch("bundles.trimtab.dev/v1", "Bundle", "a", fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, b.operator+"/mode"))
			b.fence()
			v.with(func() {
				if got := v.things[name].size; got != 3 {
					t.Errorf("size is %d, want 3", got)
				}
			})
		})
	}
}

// TestNodeOfAnother: of two components that have the same external resource the first keeps it.
func TestNodeOfAnother(t *testing.T) {
	t.Parallel()
	v := &vendor{things: map[string]sold{}}
	b := newBench(t, selling(v))
	same := database("db", 3)
	same.Spec.Name = b.namespace + ".same"
	b.create(same)
	b.ready()
	v.with(func() { v.log = nil })
	other := same.DeepCopy()
	other.Spec.Size = 9
	second := b.createAs("second", other)
	testenv.Wait(t, b.admin, second, "refused", func(o *bundle.Bundle) bool { return strings.Contains(o.Status.Message, "belongs to") })
	if err := b.admin.Delete(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	testenv.Gone(t, b.admin, second, "deleted")
	if got := v.calls("create", "update", "delete"); len(got) > 0 || len(v.names()) != 1 {
		t.Errorf("for the second component the operator called %q", got)
	}
}

// TestNodeIsPurged: an external resource can be there for a while only.
func TestNodeIsPurged(t *testing.T) {
	t.Parallel()
	v := &vendor{things: map[string]sold{}}
	b := newBench(t, selling(v))
	scratch := database("scratch", 1)
	metav1.SetMetaDataAnnotation(&scratch.ObjectMeta, b.operator+"/purge-order", "0")
	b.create(scratch, database("db", 3))
	b.ready()
	b.stop()
	b.start()
	b.fence()
	scratchName, name := b.namespace+".scratch", b.namespace+".db"
	if got := v.calls("create "+scratchName, "delete "+scratchName); !cmp.Equal(got, []string{"create " + scratchName, "delete " + scratchName}) {
		t.Errorf("calls about what is purged: %q", got)
	}
	if diff := cmp.Diff([]string{name}, v.names()); diff != "" {
		t.Errorf("what there is (-want +got):\n%s", diff)
	}
	b.delete()
	b.gone()
	if left := v.names(); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
}

// unsteady is a driver that fails at each second call of Record, as one does whose cluster does not answer.
type unsteady struct {
	node.Driver

	calls *atomic.Int32
}

// Start implements node.Starter.
func (d unsteady) Start(ctx context.Context, wake func(types.NamespacedName, time.Duration)) {
	if s, ok := d.Driver.(node.Starter); ok {
		s.Start(ctx, wake)
	}
}

// Record implements node.Driver.
func (d unsteady) Record(ctx context.Context, r node.Request) ([]byte, error) {
	if d.calls.Add(1)%2 == 1 {
		return nil, errors.New("no answer")
	}
	return d.Driver.Record(ctx, r)
}

// TestNodeIsRecordedAfterAFailure: what could not be recorded in one pass is recorded in the next, although
// nothing has changed since.
func TestNodeIsRecordedAfterAFailure(t *testing.T) {
	t.Parallel()
	v := &vendor{things: map[string]sold{}}
	b := prepareBench(t, selling(v))
	b.options.Drivers = []node.Driver{unsteady{external.Nodes(things{}, v.sells()), new(atomic.Int32)}}
	b.start()
	for _, size := range []int{3, 4} {
		if size == 3 {
			b.create(database("db", size))
		} else {
			b.change(database("db", size))
		}
		b.ready()
		v.with(func() {
			if got := v.things[b.namespace+".db"].size; got != size {
				t.Errorf("the component is ready with a database of size %d, want %d", got, size)
			}
		})
	}
}
