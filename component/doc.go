// Package component makes controllers for kinds whose objects each stand for a set of Kubernetes objects,
// such as a product or a service with all it needs. Such an object is a component. The objects of its set
// are its dependents.
//
// You write a [Renderer], which returns the dependents of a component. [New] makes the controller. It
// applies the dependents in order, corrects drift, deletes what is no longer rendered, and deletes
// everything with the component. While nothing changes, it sends no request besides its watches and the
// renewal of the manager's lease. [Options.LastObservedAtEvery] and requests of the renderer are exceptions.
//
// The inventory in the component's status lists a dependent before it is created and until it is gone. The
// operator deletes only objects that the inventory lists and whose annotation names the component. A lost
// inventory is rebuilt from the objects of Options.Kinds, of the rendered kinds, and of the kinds that the
// operator watches for other components.
//
// Names, annotations, policies and states are those of SAP's component-operator-runtime. The package also
// has its interfaces: [NewReconciler] runs a [Component] with a [Generator] and hooks. Its default update
// policy differs from that of New.
//
// A component can set where its dependents go, as which user they are written, when it is retried, and
// more; see [PlacementConfiguration] and the other configuration interfaces. Package api has types for them
// to embed in specs. References to Secrets and ConfigMaps in a spec are watched.
//
// Start with the examples of New and NewReconciler. docs/components.md lists annotations, policies, states
// and reasons.
package component
