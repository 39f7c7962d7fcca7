package component_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/node"
)

// region: database

// store renders a database, which is an external resource, a Secret with its address, a migration that runs
// when the database is there, and a ConfigMap that is applied after all that.
func store(_ context.Context, r component.RenderRequest[*bundle.Bundle]) (component.Set, error) {
	var s component.Set
	db := s.Add(&thing.Thing{ObjectMeta: metav1.ObjectMeta{Name: r.Name}, Spec: thing.Spec{Size: 3}})
	address := component.From(&s, db, func(db *thing.Thing) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: r.Name}, StringData: map[string]string{"host": db.Status.Host}}
	})
	migration := s.Do("migrate", "schema-7", migrate).After(db)
	s.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: r.Name}}).After(address, migration)
	return s, nil
}

// newStores makes the controller. things is an [external.Driver], and vendor the client of its API.
func newStores(v *vendor) *component.Controller[*bundle.Bundle] {
	return component.New(component.RenderFunc[*bundle.Bundle](store), component.Options[*bundle.Bundle]{
		Name:   "stores.example.org",
		Scheme: &runtime.SchemeBuilder{thing.AddToScheme},
		Drivers: []node.Driver{external.Nodes(things{}, external.Options[*thing.Thing, *vendor]{
			Connect: func(context.Context) (*vendor, error) { return v, nil },
		})},
	})
}

// endregion: database

func migrate(context.Context) error { return nil }

// An external resource is a dependent like any other if there is a driver for its kind.
func ExampleFrom() {
	fmt.Printf("%T\n", newStores(&vendor{}))
	// Output:
	// *component.Controller[*github.com/trimtab-dev/trimtab/internal/bundle.Bundle]
}

// A gate holds back what comes after it until a function lets it through.
func ExampleSet_Gate() {
	opens := time.Date(2030, time.January, 1, 0, 0, 0, 0, time.UTC)
	var s component.Set
	gate := s.Gate("opening", time.Minute, func(context.Context) (why string, err error) {
		if opens.IsZero() {
			return "", errors.New("no opening is planned")
		}
		if time.Now().Before(opens) {
			return "the shop opens in 2030", nil
		}
		return "", nil
	})
	s.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}).After(gate)
	objects, err := s.Annotated("shops.example.org", runtime.NewScheme())
	fmt.Println(objects[1].GetAnnotations(), err)
	// Output:
	// map[shops.example.org/depends-on:trimtab.dev/Function//opening] <nil>
}
