package lint_test

import (
	"fmt"

	"github.com/trimtab-dev/trimtab/lint"
)

// The names are those in allowances and in the flags of go vet.
func ExampleAnalyzers() {
	for _, a := range lint.Analyzers() {
		fmt.Println(a.Name)
	}
	// Output:
	// statusowner
	// specwrite
	// directwrite
	// requeueerror
	// reconcilecontext
	// reconcilelog
	// clientset
	// ownerless
	// childcategory
	// finalizer
	// needlessdelete
	// statusclock
	// statusorder
	// widewatch
	// readback
	// staleready
	// allowance
}
