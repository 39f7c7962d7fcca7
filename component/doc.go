// Package component makes controllers for kinds whose objects each stand for a set of Kubernetes objects:
// a product, a service with all it needs. Such an object is a component, and the objects of its set are
// its dependents.
//
// You write a [Renderer], which returns the dependents of a component; [New] makes the controller. It
// creates the dependents in order, corrects what others change in them, deletes what is no longer
// rendered, and deletes everything with the component. While nothing changes it sends no request but its
// watches and the renewal of the manager's lease, unless [Options.LastObservedAtEvery] asks for writes or the
// renderer sends requests of its own.
//
// A dependent is in the component's inventory before it is created, and until it is gone. The inventory is
// status.inventory, or a compressed form of it if there are many.
// The operator deletes only what carries its label and annotation and is what the inventory lists. An
// inventory that was lost is found again among the objects of Options.Kinds, of the kinds that are rendered, and
// of those that the operator watches for other components.
//
// The names, annotations, policies and states are those of SAP's component-operator-runtime. Its
// interfaces are here, too: a [Component] with a [Generator] and hooks runs in [NewReconciler], which
// differs from New in the default update policy.
//
// A component can say where its dependents go, as whom they are written, when it is retried and more, by
// [PlacementConfiguration] and the like; package api has types to embed in specs. References to Secrets
// and ConfigMaps, wherever they are in a spec, are watched.
//
// Start with the examples of New and NewReconciler; docs/components.md lists annotations, policies, states
// and reasons.
package component
