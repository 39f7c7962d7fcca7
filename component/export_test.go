package component

import (
	"cmp"
	"time"
)

// NewTunedReconciler is NewReconciler with options that it does not offer.
func NewTunedReconciler[T Component](name string, g Generator, o ReconcilerOptions, change func(*Options[T])) *Reconciler[T] {
	return newReconciler(name, g, o, change)
}

// RecheckBlocked says when a blocked deletion is tried again although no event came.
func (c *Controller[T]) RecheckBlocked(after time.Duration) { c.engine.Recheck = after }

// ConfigurationOf returns what counts of what a component says, or "invalid".
func ConfigurationOf[T Object](obj T) map[string]any {
	c, err := Options[T]{}.configurationOf(obj)
	if err != nil {
		return map[string]any{"invalid": err.Error()}
	}
	out := map[string]any{
		"namespace": c.Namespace, "name": c.Name, "suspended": c.Suspended,
		"requeue": c.Requeue, "retry": c.Retry, "timeout": c.Timeout,
		"adoption": c.Policies.AdoptionPolicy, "update": c.Policies.UpdatePolicy, "delete": c.Policies.DeletePolicy,
		"namespaces": cmp.Or(c.MissingNamespaces, "default"),
	}
	if k, ok := configured[ClientConfiguration](obj); ok {
		out["kubeconfig"] = string(k.GetKubeConfig())
	}
	if i, ok := configured[ImpersonationConfiguration](obj); ok {
		out["user"], out["groups"] = i.GetImpersonationUser(), i.GetImpersonationGroups()
	}
	return out
}
