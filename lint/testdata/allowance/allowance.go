package allowance

import (
	"context"
	"time"

	"github.com/trimtab-dev/trimtab/lint/testdata/api"
	"github.com/trimtab-dev/trimtab/loop"
)

type reconciler struct{}

func (reconciler) Reconcile(_ context.Context, r *loop.Run[*api.Shop]) loop.Outcome {
	//trimtab:allow specwrite the example needs it
	r.Obj.Spec.Size = 1
	r.Obj.Spec.Size = 2 //trimtab:allow specwrite in the same line
	//trimtab:allow statusclock two in a row stand for the same line
	//trimtab:allow specwrite of it
	r.Obj.Spec.Options["at"], r.Obj.Status.Phase = "a", time.Now().String()
	// The next one has no reason. // want-below "trimtab:allow specwrite has no reason and allows nothing"
	//trimtab:allow specwrite
	r.Obj.Spec.Size = 3 // want "changes the spec of Shop"
	// Nothing needs the next one. // want-below "nothing in this line or the next needs trimtab:allow specwrite; remove it"
	//trimtab:allow specwrite it was needed once
	r.Obj.Status.Phase = "x"
	// And the next is misspelt. // want-below "trimtab:allow names .specwrites., which is no analyzer"
	//trimtab:allow specwrites misspelt
	return loop.Done()
}
