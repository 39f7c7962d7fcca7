package component_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/component/componenttest"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/node"
	"github.com/trimtab-dev/trimtab/testenv"
)

// TestCrashSweepOfNodes: a component with an external resource and an object that is made from it is installed,
// changed and deleted, while the operator is killed before and after each write and each call of the external
// API that changes something.
func TestCrashSweepOfNodes(t *testing.T) {
	t.Parallel()
	componenttest.CrashSweep(t, withDatabase(t, &vendor{things: map[string]sold{}}))
}

// withDatabase is the story of a component with an external resource, of which there are two after the change.
func withDatabase(t *testing.T, v *vendor) componenttest.Sweep[*bundle.Bundle] {
	t.Helper()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, bundle.CRDs)
	const name = "nodes.op.test"
	b := &bench{t: t}
	of := func(objects ...client.Object) *bundle.Bundle {
		c := &bundle.Bundle{}
		c.Name = "a"
		c.Spec.Objects = b.raw(objects...)
		return c
	}
	renderer := func(_ context.Context, r component.RenderRequest[*bundle.Bundle]) (component.Set, error) {
		objects, err := r.Component.Render()
		s := component.Objects(objects...)
		db := s.Add(database("db", len(objects)))
		component.From(&s, db, func(db *thing.Thing) client.Object { return configMap("made", db.Status.Host) })
		return s, err
	}
	return componenttest.Sweep[*bundle.Bundle]{
		Config: cfg, AddToScheme: bundle.AddToScheme, Renderer: component.RenderFunc[*bundle.Bundle](renderer),
		Options: options{
			Name: name, Scheme: &runtime.SchemeBuilder{thing.AddToScheme},
			Loop: loop.Options[*bundle.Bundle]{Retry: loop.Retry{Initial: 20 * time.Millisecond, Max: 200 * time.Millisecond}},
		},
		Versions: []*bundle.Bundle{
			of(configMap("c", "1")),
			of(configMap("c", "2"), database("more", 1)),
			of(configMap("c", "2")),
		},
		Every: killsPlayed(),
		Drivers: func(p *componenttest.Process) []node.Driver {
			o := v.sells()
			o.CreateGrace = 50 * time.Millisecond
			return []node.Driver{external.Nodes(killed{p: p}, o)}
		},
		External: func(namespace string) map[string]string {
			found := map[string]string{}
			v.with(func() {
				for name, t := range v.things {
					if strings.HasPrefix(name, namespace+".") {
						found[name] = fmt.Sprint("size ", t.size, ", incarnation ", t.tags[external.MarkIncarnation])
					}
				}
			})
			return found
		},
	}
}

// killed is things in a process that can be killed.
type killed struct {
	things

	p *componenttest.Process
}

func (k killed) Create(ctx context.Context, r external.CreateRequest[*thing.Thing, *vendor]) (a external.CreateResponse[sold], err error) {
	err = k.p.Call("create "+r.Object.Name, func() error {
		a, err = k.things.Create(ctx, r)
		return err
	})
	return a, err
}

func (k killed) Update(ctx context.Context, r external.UpdateRequest[*thing.Thing, *vendor, sold]) (a external.UpdateResponse[sold], err error) {
	err = k.p.Call("update "+r.Object.Name, func() error {
		a, err = k.things.Update(ctx, r)
		return err
	})
	return a, err
}

func (k killed) Delete(ctx context.Context, r external.DeleteRequest[*thing.Thing, *vendor]) (a external.DeleteResponse, err error) {
	err = k.p.Call("delete "+r.Object.Name, func() error {
		a, err = k.things.Delete(ctx, r)
		return err
	})
	return a, err
}
