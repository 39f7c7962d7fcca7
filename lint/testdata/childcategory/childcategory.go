package childcategory

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/trimtab-dev/trimtab/children"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/lint/testdata/api"
)

func volume(*api.Shop) *corev1.PersistentVolumeClaim { return &corev1.PersistentVolumeClaim{} }
func settings(*api.Shop) *corev1.ConfigMap           { return &corev1.ConfigMap{} }
func database(*api.Shop) *api.Database               { return &api.Database{} }
func foreign(*api.Shop) *probe.Probe                 { return &probe.Probe{} }
func exposed(*api.Shop) bool                         { return true }

func set() *children.Set[*api.Shop] {
	later := children.Named("later", volume) // who knows what is made of it
	return children.Of(
		children.Named("settings", settings),
		children.Named("own", database),
		children.Named("data", volume),               // want "anybody may delete this PersistentVolumeClaim"
		children.Named("more", volume).When(exposed), // want "anybody may delete this PersistentVolumeClaim"
		children.Named("foreign", foreign),           // want "anybody may delete this Probe"
		children.Named("kept", volume).Protected(),
		children.Named("also kept", foreign).When(exposed).Protected().Adopt("never"),
		children.Named("cache", volume), //trimtab:allow childcategory holds what can be computed again
		later.Protected(),
	)
}
