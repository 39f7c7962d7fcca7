// Package actors simulates the controllers of a healthy cluster that package fault does not run: those for
// workloads, the kubelet, and what gives volumes and addresses. A scenario that names them needs no steps in which
// Deployments or Pods become ready:
//
//	fault.Scenario{
//		Actors: actors.All(),
//		...
//	}
//
// They act when the operator has nothing to do, one after another. They write what the real controllers write, except
// where their documentation says something else. The garbage collector always runs.
package actors
