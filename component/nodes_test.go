package component_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/node"
)

// selling gives an operator a driver of the vendor's things.
func selling(v *vendor) func(*options) {
	return func(o *options) {
		o.Scheme = &runtime.SchemeBuilder{thing.AddToScheme}
		o.Drivers = []node.Driver{external.Nodes(things{}, v.sells())}
	}
}

// database is a thing that a component has.
func database(name string, size int) *thing.Thing {
	return &thing.Thing{
		TypeMeta:   metav1.TypeMeta{APIVersion: thing.GroupVersion.String(), Kind: "Thing"},
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: thing.Spec{Size: size},
	}
}

func TestExternalNode(t *testing.T) {
	t.Parallel()
	v := &vendor{things: map[string]sold{}}
	b := newBench(t, selling(v))
	name := b.namespace + ".db"
	b.create(database("db", 3), configMap("a", "1"))
	b.ready()
	if diff := cmp.Diff([]string{"create " + name}, v.calls("create", "update", "delete")); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	b.change(database("db", 4), configMap("a", "1"))
	b.ready()
	b.delete()
	b.gone()
	if diff := cmp.Diff([]string{"create " + name, "update " + name, "delete " + name}, v.calls("create", "update", "delete")); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if left := v.names(); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
}
