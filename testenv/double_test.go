package testenv_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// double stands in for a test, so that a test can see another one fail and an example can
// run one.
type double struct {
	testing.TB
	ctx   context.Context
	said  string
	atEnd []func()
}

func (d *double) Helper()                  {}
func (d *double) Name() string             { return "Double" }
func (d *double) Context() context.Context { return d.ctx }
func (d *double) Cleanup(f func())         { d.atEnd = append(d.atEnd, f) }
func (d *double) Logf(string, ...any)      {}
func (d *double) Fatal(args ...any)        { d.said = fmt.Sprint(args...); runtime.Goexit() }
func (d *double) Fatalf(format string, args ...any) {
	d.said = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// failure runs a test and answers what it said when it failed: nothing if it passed.
func failure(ctx context.Context, test func(t testing.TB)) string {
	d := &double{ctx: ctx}
	var end sync.WaitGroup
	end.Go(func() { test(d) })
	end.Wait()
	for _, f := range slices.Backward(d.atEnd) {
		f()
	}
	return d.said
}

// run stands in for go test.
func run(test func(t testing.TB)) {
	if said := failure(context.Background(), test); said != "" { //nolint:forbidigo // an example has no test to ask
		fmt.Println(said)
	}
}

// operator is the operator of the example: it finishes orders.
func operator(ctx context.Context, c client.Client, orders *corev1.ConfigMap) {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"state":"done"}}`))
	_ = c.Patch(ctx, orders.DeepCopy(), patch) // the example fails if this does
}

// canWriteConfigMaps is a rule of the example's role.
var canWriteConfigMaps = rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}}
