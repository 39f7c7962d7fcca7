package scenarios

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// Handover returns the scenario of an object that moves from one component to another and back: first the new
// one asks for it and waits, then the old one drops it before the new one asks. It must never be deleted:
// somebody holds it, so that a deletion that had begun would be seen.
func Handover() []fault.Scenario {
	a, b := &bundle.Bundle{ObjectMeta: named("a", nil)}, &bundle.Bundle{ObjectMeta: named("b", nil)}
	one, two, moved := configMapOf("one", "1"), configMapOf("two", "1"), configMapOf("moved", "1")
	a.Spec.Objects, b.Spec.Objects = append(a.Spec.Objects, one, moved), append(b.Spec.Objects, two)
	all := configMaps("moved=1", "one=1", "two=1")
	steps := []fault.Step{
		together("create a and b", fault.Create(a), fault.Create(b)).Becomes(a, api.ConditionReady).Becomes(b, api.ConditionReady).Expecting(all),
		{Name: "somebody holds moved", Do: hold("moved")},
		fault.Merge(b, objects(two, moved)).Expecting(movedIsOf("a")),
		fault.Merge(a, objects(one)).Becomes(a, api.ConditionReady).Becomes(b, api.ConditionReady).Expecting(movedIsOf("b")),
		together("b drops moved and a asks for it", fault.Merge(b, objects(two)), fault.Merge(a, objects(one, moved))).
			Becomes(a, api.ConditionReady).Becomes(b, api.ConditionReady).Expecting(movedIsOf("a")),
		fault.Delete(b).Gone(b).Expecting(movedIsOf("a")),
		fault.Step{Name: "moved is released", Do: unhold("moved")}.Expecting(movedIsOf("a")),
		fault.Delete(a).Gone(a).Expecting(configMaps()),
	}
	s := bundleScenario("component-handover", bundlesWith(withGrace), steps, "update configmaps")
	return []fault.Scenario{racing(s, when(handedOver, fault.Delete(b)), when(handedOver, fault.Merge(b, objects(two))))}
}

// handedOver holds unless ConfigMap moved is on its way from a to b: b leaves an annotation on it if it drops what
// it has not applied yet.
func handedOver(ctx context.Context, w *fault.World) (bool, error) {
	m, a := &corev1.ConfigMap{}, &bundle.Bundle{}
	if err := w.Client.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "moved"}, m); err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	if err := w.Client.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "a"}, a); err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	isOfA, onItsWay := strings.Contains(m.Annotations[bundles+"/owner-id"], "/default/a"), m.Annotations[bundles+"/handed-over-by"] != ""
	return !onItsWay && isOfA == (len(a.Spec.Objects) == 2), nil
}

// withGrace gives the new component time to recover from a fault, but less than the cluster is watched for. How
// long a deletion takes that somebody holds up is not what this is about.
func withGrace(_ *fault.Env, o *component.Options[*bundle.Bundle]) {
	o.HandoverGrace, o.Timeout = 20*time.Second, 24*time.Hour
}

// movedIsOf expects that ConfigMap moved belongs to a component and is not being deleted.
func movedIsOf(owner string) func(context.Context, *fault.World) error {
	return func(ctx context.Context, w *fault.World) error {
		m := &corev1.ConfigMap{}
		if err := w.Client.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "moved"}, m); err != nil {
			return err
		}
		if got := m.Annotations[bundles+"/owner-id"]; !strings.Contains(got, "/default/"+owner) || m.DeletionTimestamp != nil {
			return fmt.Errorf("ConfigMap moved belongs to %q, deleted at %v; want it to belong to %q and to stay", got, m.DeletionTimestamp, owner)
		}
		return nil
	}
}
