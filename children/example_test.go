package children_test

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/trimtab-dev/trimtab/children"
	"github.com/trimtab-dev/trimtab/internal/probe"
)

// region: children

// settings are what the pods of a Probe read.
func settings(p *probe.Probe) *corev1.ConfigMap {
	return &corev1.ConfigMap{Data: map[string]string{"size": fmt.Sprint(p.Spec.Size)}}
}

// volume is where they keep their data.
func volume(p *probe.Probe) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: p.Name}}
}

func probes() *children.Controller[*probe.Probe] {
	return children.New(children.Of(
		children.Named("settings", settings),
		children.Named("data", volume).Protected().When(func(p *probe.Probe) bool { return p.Spec.Size > 0 }),
	), children.Options[*probe.Probe]{})
}

// endregion: children

// A controller that does nothing but keep the children of its objects as they should be. The permissions it needs and
// the reason for its finalizer follow from the children.
func ExampleNew() {
	scheme := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(scheme)
	_ = probe.AddToScheme(scheme)
	c := probes()
	needs, err := c.Needs(scheme)
	if err != nil {
		panic(err)
	}
	for _, n := range needs {
		fmt.Println(n.Kind+"/"+n.Subresource, strings.Join(n.Verbs, ","))
	}
	name, why := c.Finalizer(probe.GroupVersion.WithKind("Probe"), "probes")
	fmt.Printf("objects get the finalizer %s, because %s\n", name, why)
	// Output:
	// Probe/ get,list,watch,patch
	// Probe/status patch
	// Event/ create,patch
	// ConfigMap/ list,watch
	// PersistentVolumeClaim/ list,watch
	// Probe/finalizers update
	// ConfigMap/ get,list,watch,create,patch,delete
	// PersistentVolumeClaim/ get,list,watch,create,patch,delete
	// objects get the finalizer probe.probe.trimtab.dev/children, because child "data" is protected
}
