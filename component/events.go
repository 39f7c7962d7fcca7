package component

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/trimtab-dev/trimtab/component/internal/engine"
	"github.com/trimtab-dev/trimtab/internal/plain"
)

// disableEvents is the annotation of a component about which no events are recorded, as the end of its name.
const disableEvents = "disable-events"

// silent reports whether no events are recorded about the component and its dependents.
func (p *pass[T]) silent() bool {
	return p.run.Obj.GetAnnotations()[p.options.Name+"/"+disableEvents] == "true"
}

// did counts what was done to a dependent and records an event about it. Where the dependent is in another
// cluster, there is no event.
func (p *pass[T]) did(d engine.Deed) {
	count(p.options.Name, d)
	if !p.options.DependentEvents || p.silent() || p.place.raw != nil {
		return
	}
	about := &corev1.ObjectReference{
		APIVersion: d.GroupVersion().String(), Kind: d.Kind, Namespace: d.Namespace, Name: d.Name, UID: d.UID,
	}
	kind, note := corev1.EventTypeNormal, "by "+p.obj.GetNamespace()+"/"+p.obj.GetName()
	if d.Err != nil {
		kind, note = corev1.EventTypeWarning, plain.Error(d.Err)
	}
	p.recorder.Eventf(about, p.run.Obj, kind, d.What, "Reconcile", "%s", note)
}
