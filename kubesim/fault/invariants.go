package fault

// Invariant is the id of something that must hold in every run. docs/faults.md of the repository says
// more about each.
type Invariant string

// The invariants.
const (
	// I1: after any disturbance, the cluster and the external API reach the same state as without one.
	I1 Invariant = "I1"
	// I2: no external resource is left without an owner.
	I2 Invariant = "I2"
	// I3: nothing is created twice for one owner: no external resource, and no equal Kubernetes object under a
	// generated name.
	I3 Invariant = "I3"
	// I4: no external resource is created before the finalizer is stored.
	I4 Invariant = "I4"
	// I5: at rest there are no writes, and no reads that bypass the cache.
	I5 Invariant = "I5"
	// I6: an object that is being deleted is removed, and not before its external resource.
	I6 Invariant = "I6"
	// I7: observedGeneration is never ahead of the spec that was used, and never decreases.
	I7 Invariant = "I7"
	// I8: Ready is True only for objects that were ready.
	I8 Invariant = "I8"
	// I9: conditions change only when something has changed, and their times only with their status.
	I9 Invariant = "I9"
	// I10: what others made or wrote is left alone. To delete an object that it neither created nor put its finalizer on, the operator
	// names the UID or the resourceVersion.
	I10 Invariant = "I10"
	// I13: no controller reconciles again and again without cause.
	I13 Invariant = "I13"
	// I14: the values in the scenario's Secrets appear in Secrets only.
	I14 Invariant = "I14"
	// I15: the roles allow all requests of the operator, and nothing that it never requests.
	I15 Invariant = "I15"
	// I17: no goroutine outlives the manager, and no panic ends the process.
	I17 Invariant = "I17"
	// I19: status and events describe the present.
	I19 Invariant = "I19"
	// I20: an object that waits for code that does not return reports that.
	I20 Invariant = "I20"
)
