package component

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/loop"
)

// singleton is the worker of a kind of which one component is allowed.
type singleton[T Object] struct{ *worker[T] }

// onlyOne is the key that all components share.
const onlyOne = "the only one"

// IndexKeys implements [loop.Indexer].
func (*singleton[T]) IndexKeys(T) []string { return []string{onlyOne} }

// Reconcile implements [loop.Reconciler].
func (s *singleton[T]) Reconcile(ctx context.Context, run *loop.Run[T]) loop.Outcome {
	all, err := run.Sharing(ctx, onlyOne)
	if err != nil {
		return loop.Fail(err)
	}
	if len(all) == 0 {
		return s.worker.Reconcile(ctx, run)
	}
	first := slices.MinFunc(all, older[T])
	if first.GetUID() == run.Obj.GetUID() {
		return s.worker.Reconcile(ctx, run)
	}
	err = fmt.Errorf("%s exists, and there may be one only; delete one of the two", client.ObjectKeyFromObject(first))
	c := conclude(situation{Invalid: true, Failure: err.Error()})
	c.Reason = reasonSingleton
	return s.open(run).report(c).outcome(err)
}

// older orders components by age, and by name if they were created in the same second. So every process
// comes to the same result, whatever the statuses say.
func older[T Object](a, b T) int {
	return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time),
		cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}
