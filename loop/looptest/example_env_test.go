package looptest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/loop/looptest"
)

// gauge accepts Probes up to a size.
type gauge struct{}

func (gauge) Reconcile(_ context.Context, r *loop.Run[*probe.Probe]) loop.Outcome {
	if r.Obj.Spec.Size > 10 {
		return loop.Terminal("TooLarge", errors.New("spec.size is more than 10"))
	}
	r.Obj.Status.Note = fmt.Sprint(r.Obj.Spec.Size)
	return loop.Done()
}

func (gauge) Cleanup(context.Context, *loop.Run[*probe.Probe]) loop.CleanupOutcome {
	return loop.CleanedUp()
}

// inExample is the test of an example, which has none.
type inExample struct{ testing.TB }

func (inExample) Helper()                  {}
func (inExample) Cleanup(func())           {}
func (inExample) Context() context.Context { return context.Background() } //nolint:forbidigo // an example has no other

// The life of an object, pass by pass.
func ExampleNewEnv() {
	test := func(t testing.TB) { //nolint:thelper // a test, not a helper
		p := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}, Spec: probe.ProbeSpec{Size: 11}}
		controller := loop.New[*probe.Probe](gauge{}, loop.Options[*probe.Probe]{})
		env := looptest.NewEnv(t, controller, looptest.Cluster{AddToScheme: probe.AddToScheme, Objects: []client.Object{p}})

		for _, pass := range env.Settle() {
			fmt.Println(pass.Outcome, len(pass.Writes), "writes,", pass.Conditions)
		}
		fmt.Println("once more:", len(env.Pass(p).Writes), "writes")

		if err := env.Client().Delete(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		fmt.Println("deleted:", env.Settle()[0].Outcome)
	}
	test(inExample{})
	// Output:
	// Terminal 2 writes, [Ready False TooLarge spec.size is more than 10 Stalled True TooLarge spec.size is more than 10]
	// once more: 0 writes
	// deleted: Removed
}

// The answer to the first write of a status is lost: it was carried out, and the controller does not know.
func ExampleInject() {
	test := func(t testing.TB) { //nolint:thelper // a test, not a helper
		faults := looptest.Inject(looptest.Fault{On: "apply probes/status", Nth: 1, Code: http.StatusInternalServerError, After: true})
		p := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}, Spec: probe.ProbeSpec{Size: 1}}
		env := looptest.NewEnv(t, loop.New[*probe.Probe](gauge{}, loop.Options[*probe.Probe]{}), looptest.Cluster{
			AddToScheme: probe.AddToScheme, Objects: []client.Object{p}, Wrap: []func(http.RoundTripper) http.RoundTripper{faults.Wrap},
		})
		first := env.Pass(p)
		fmt.Println(first.Outcome, first.State, "and again in", first.Next.Round(100*1000*1000))
		fmt.Println(env.Pass(p).Outcome)
	}
	test(inExample{})
	// Output:
	// Fail Succeeded and again in 1s
	// Done
}

// The cache learns of nothing, so a pass is put off until it shows what the one before has written.
func ExampleLag() {
	test := func(t testing.TB) { //nolint:thelper // a test, not a helper
		lag := &looptest.Lag{Resource: "probes"}
		p := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}}
		env := looptest.NewEnv(t, loop.New[*probe.Probe](gauge{}, loop.Options[*probe.Probe]{}), looptest.Cluster{
			AddToScheme: probe.AddToScheme, Objects: []client.Object{p}, Lags: []*looptest.Lag{lag},
		})
		lag.Hold()
		fmt.Println(env.Pass(p).Outcome)
		fmt.Printf("%q\n", env.Pass(p).Outcome)
		lag.Release()
		fmt.Println(env.Pass(p).Outcome)
	}
	test(inExample{})
	// Output:
	// Done
	// ""
	// Done
}
