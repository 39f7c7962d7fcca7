package main

import (
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trimtab-dev/trimtab/lint/testdata/widewatch/controller"
)

func main() {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{}) // want "this manager.s cache holds every Secret of the cluster, because"
	if err != nil {
		panic(err)
	}
	if err := controller.Setup(mgr, nil); err != nil {
		panic(err)
	}
}
