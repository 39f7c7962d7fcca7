package loop_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/trimtab-dev/trimtab/loop"
)

// mailer sends mail, and not while its pass is a dry run.
type mailer struct{}

// DryRunSafe implements loop.DryRunner.
func (mailer) DryRunSafe() bool { return true }

func (mailer) Reconcile(ctx context.Context, _ *loop.Run[*corev1.ConfigMap]) loop.Outcome {
	if loop.IsDryRun(ctx) {
		fmt.Println("would send mail")
		return loop.Done()
	}
	return loop.Fail(fmt.Errorf("there is no mail server"))
}

var _ loop.DryRunner = mailer{}

// An operator's command "plan" runs this Reconciler without asking.
func ExampleDryRunner() {
	c := loop.New(mailer{}, loop.Options[*corev1.ConfigMap]{})
	fmt.Println(c.DryRunSafe())
	mailer{}.Reconcile(loop.WithDryRun(context.Background()), nil)
	// Output:
	// true
	// would send mail
}
