package component

// NewTunedReconciler is NewReconciler with options that it does not offer.
func NewTunedReconciler[T Component](name string, g Generator, o ReconcilerOptions, change func(*Options[T])) *Reconciler[T] {
	return newReconciler(name, g, o, change)
}
