package component_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/internal/fingerprint"
	"github.com/trimtab-dev/trimtab/internal/fingerprint/fingerprinttest"
	"github.com/trimtab-dev/trimtab/testenv"
)

// TestDrift does to dependents what clients do, and expects the correction: exactly one write where a
// value or its ownership changed, none where not.
func TestDrift(t *testing.T) {
	t.Parallel()
	t.Run("B-2 exact drift", func(t *testing.T) {
		t.Parallel()
		driftCases(t, func(c fingerprinttest.Case) bool { return c.Name[0] >= '0' && c.Name[0] <= '9' })
	})
	t.Run("more clients", func(t *testing.T) {
		t.Parallel()
		driftCases(t, func(c fingerprinttest.Case) bool { return c.Name[0] < '0' || c.Name[0] > '9' })
	})
}

// driftCases runs all cases that fit, each on objects of its own, which are all dependents of one
// component.
func driftCases(t *testing.T, fits func(fingerprinttest.Case) bool) {
	t.Helper()
	b := prepareBench(t)
	b.cfg.WarningHandlerWithContext = rest.NoWarnings{}
	passes, corrections := &delays{}, &writes{}
	b.options.Loop.Trace, b.options.RequeueInterval = passes, time.Hour
	corrections.watch(b.cfg)
	testenv.Install(t, b.cfg, fingerprinttest.CRD())
	b.start()
	var cases []driftCase
	var dependents []client.Object
	for i, c := range fingerprinttest.Cases() {
		for _, kind := range fingerprinttest.Kinds() {
			if !fits(c) || !slices.Contains(c.Kinds, kind.Name) {
				continue
			}
			o := fingerprinttest.Object{Client: b.admin, Kind: kind, Manager: b.operator, Namespace: b.namespace, Name: fmt.Sprintf("case-%d", i)}
			cases = append(cases, driftCase{Case: c, object: o})
			dependents = append(dependents, kind.Manifest(b.namespace, o.Name))
		}
	}
	b.create(dependents...)
	b.await("applied", func(o *bundle.Bundle) bool {
		return len(o.Status.Inventory) == len(dependents) && !slices.ContainsFunc(o.Status.Inventory, func(i api.InventoryItem) bool { return i.Digest == "" })
	})
	b.requests.Reset()
	began := time.Now()
	for i := range cases {
		cases[i].do(t, b)
	}
	work := time.Since(began) / 4 // it is about all of the cases, one after another
	var slowest time.Duration
	for _, c := range cases {
		c.wait(b)
		slowest = max(slowest, corrections.since(c.path(), c.done))
	}
	passes.prompt(t, slowest, work)
	b.fence()
	for _, c := range cases {
		t.Run(c.Name+"/"+c.object.Kind.Name, func(t *testing.T) { c.check(t, b) })
	}
}

type driftCase struct {
	fingerprinttest.Case
	object fingerprinttest.Object
	before *unstructured.Unstructured
	// done is when the mutation was.
	done time.Time
}

// path is the end of the path of its object.
func (c *driftCase) path() string { return strings.ToLower(c.object.Kind.Name) + "s/" + c.object.Name }

// do does what the case says.
func (c *driftCase) do(t *testing.T, b *bench) {
	t.Helper()
	c.before = c.get(t)
	owner, digest := b.key("owner-id"), b.key("digest")
	c.object.Labels = map[string]string{owner: c.before.GetLabels()[owner]}
	c.object.Annotations = map[string]string{owner: c.before.GetAnnotations()[owner], digest: c.before.GetAnnotations()[digest]}
	err := c.Do(t.Context(), c.object)
	c.done = time.Now()
	if c.Recreates && apierrors.IsAlreadyExists(err) {
		err = nil // the operator was faster
	}
	if err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
}

// wait waits until an object is as it was applied.
func (c *driftCase) wait(b *bench) {
	b.t.Helper()
	manifest := c.object.Kind.Manifest(c.object.Namespace, c.object.Name)
	testenv.Wait(b.t, b.admin, c.before.DeepCopy(), c.Name+": as the manifest says", func(u *unstructured.Unstructured) bool {
		paths, _ := fingerprint.Diff(manifest.Object, u.Object, 0)
		return len(paths) == 0 && b.owns(u)
	})
}

// check counts the writes of an object.
func (c *driftCase) check(t *testing.T, b *bench) {
	t.Helper()
	var writes []testenv.Request
	for _, r := range b.requests.All() {
		if r.IsWrite() && r.Code < 300 && r.Name == c.object.Name && strings.HasPrefix(r.Resource, strings.ToLower(c.object.Kind.Name)) {
			writes = append(writes, r)
		}
	}
	want := 1
	switch {
	case c.Want == fingerprinttest.Same:
		want = 0
	case c.Refused:
		want = 2 // the first takes over what others wrote
	}
	if len(writes) != want {
		t.Errorf("writes %v, want %d", writes, want)
	}
	if diff := cmp.Diff(c.before.Object["spec"], c.get(t).Object["spec"]); diff != "" && c.Want == fingerprinttest.Own {
		t.Errorf("the correction changed values (-before +after):\n%s", diff)
	}
}

func (c *driftCase) get(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	u, err := c.object.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// owns reports whether the operator has applied an object.
func (b *bench) owns(u *unstructured.Unstructured) bool {
	for _, e := range u.GetManagedFields() {
		if e.Manager == b.operator && e.Operation == "Apply" {
			return true
		}
	}
	return false
}
