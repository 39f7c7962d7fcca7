package looptest_test

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/loop/looptest"
)

type probing struct{ do func(*loop.Run[*probe.Probe]) loop.Outcome }

func (p probing) Reconcile(_ context.Context, r *loop.Run[*probe.Probe]) loop.Outcome { return p.do(r) }

func (probing) Cleanup(context.Context, *loop.Run[*probe.Probe]) loop.CleanupOutcome { return loop.CleanedUp() }

func TestTry(t *testing.T) {
	p := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}, Spec: probe.ProbeSpec{Size: 1}}
	c := loop.New[*probe.Probe](probing{func(r *loop.Run[*probe.Probe]) loop.Outcome {
		r.Obj.Status.Note = fmt.Sprint(r.Obj.Spec.Size)
		return loop.Done()
	}}, loop.Options[*probe.Probe]{})
	env := looptest.NewEnv(t, c, looptest.Cluster{AddToScheme: probe.AddToScheme, Objects: []client.Object{p}})
	t.Log(env.Due(p))
	t.Log(env.Settle())
	t.Log(env.Pass(p))
	if err := env.Client().Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", p)
	p.Spec.Size = 2
	if err := env.Client().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	t.Log(env.Settle())
	if err := env.Client().Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	t.Log(env.Settle())
}
