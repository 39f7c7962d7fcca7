package main

import (
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trimtab-dev/trimtab/lint/testdata/widewatch/controller"
)

func main() {
	options := configured()
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), options)
	if err != nil {
		panic(err)
	}
	if err := controller.Setup(mgr, nil); err != nil {
		panic(err)
	}
}

// configured may limit the cache.
func configured() ctrl.Options { return ctrl.Options{} }
