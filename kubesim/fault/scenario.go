package fault

import (
	"context"
	"io/fs"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// A Scenario is a story that an operator must survive: the operator, the external API that it calls,
// and what users do. It is played many times, so nothing in it may keep state between plays.
type Scenario struct {
	// Name is part of replay tokens. Required.
	Name string
	// Operator is the operator under test. Required is its SetUp.
	Operator Operator
	// ExternalAPI makes a fake of the external API that the operator calls, in memory and new each
	// time. Nil means that the operator calls none.
	ExternalAPI func() ExternalAPI
	// Replicas is how many processes run at a time, with leader election. 0 means 1.
	Replicas int
	// Steps are what happens, one after another, each when the world is quiet again.
	Steps []Step
	// Races are what users may do at any moment besides. Nil means: delete each object that a
	// step creates, delete and create it again, and what the Merge steps change, early. At a
	// moment at which the API answers NotFound, also of Do itself, the user does nothing.
	Races []Step
	// Quiet is how long nothing may change for the world to be called quiet. 0 means 30 s of
	// the simulated clock.
	Quiet time.Duration
	// Patience is how long the operator may take after a fault until the world is as it is
	// without one. 0 means 30 minutes of the simulated clock.
	Patience time.Duration
	// Reads is how many reads of the external API per hour a world at rest may cost. 0 means any
	// number.
	Reads int
	// Lag is for how long reads of the external API may not show a change yet. 0 means that they
	// always do. It needs an ExternalAPI that is a [Cloner].
	Lag time.Duration
	// Shared lists kinds of users' objects whose content the operator is there to change, as
	// "deployments.apps" or "configmaps": invariant I10 forbids that for kinds that are not the
	// operator's own.
	Shared []string
	// Secrets lists values, such as the password in a Secret that a step creates, that may show in
	// Secrets and at the external API alone: invariant I14. Errors of calls to the external API then
	// quote the first of them as the password of a URL, as many client libraries do.
	Secrets []string
	// Foreign lists fields that others own and the comparison of worlds skips, as
	// "status.lastSeen" or "metadata.annotations.example.com/at".
	Foreign []string
}

// Operator says how the operator under test is installed, and what its main does. An operator of
// trimtab has all of it from its operator.Options, by operatortest.Simulated.
type Operator struct {
	// CRDs holds the CustomResourceDefinitions as YAML files in any of its folders, such as
	// os.DirFS("config/crd/bases"). Nil means none.
	CRDs fs.FS
	// RBAC holds the operator's Roles and ClusterRoles as YAML files, such as
	// os.DirFS("config/rbac"). The operator has the roles that a binding among them names, or all
	// of them if there is no binding, and invariant I15 compares them with what it asks for. Nil
	// makes it an administrator.
	RBAC fs.FS
	// Justified lists rights that are intended although no scenario uses them, such as "list secrets"
	// or "patch events.events.k8s.io", beside those in annotations of the roles.
	Justified []string
	// AddToScheme registers the operator's types. Nil means those of client-go alone.
	AddToScheme func(*runtime.Scheme) error
	// Manager is how the operator's main configures its manager: cache, leader election and
	// so on. Scheme, addresses, logger and what a test decides are overwritten.
	Manager manager.Options
	// Ignored lists fields that may differ at the end of a run, because the operator keeps times or
	// counters there, as "metadata.annotations.example.com/record". [Scenario].Foreign has the form.
	Ignored []string
	// SetUp sets up one process, as the operator's main does between making the manager and
	// starting it. It is called for each start, so whatever it uses must be new each time.
	SetUp func(mgr ctrl.Manager, env *Env) error
}

// ExternalAPI is a fake, in memory, of an API outside the cluster whose resources the operator manages.
// It must be safe for concurrent use.
type ExternalAPI interface {
	// Resources returns all that exists there, in any order. Invariants judge by it.
	Resources() []Resource
}

// Cloner is an [ExternalAPI] that can be copied. With one, runs with a crash begin there instead of at
// the first step, and reads may show an earlier state.
type Cloner interface {
	ExternalAPI
	Clone() ExternalAPI
}

// Resource is one external resource, as a fake of its API lists it.
type Resource struct {
	// Kind and ID name it: "stream", "orders".
	Kind, ID string
	// Owner is the UID, or namespace/name, of the object that the operator made it for; an object
	// without a namespace has its name alone. Empty means that it is not the operator's.
	Owner string
	// State is what users care about. It must come out the same in each undisturbed run.
	State string
	// Ready says that it works.
	Ready bool
}

// Step is something that happens in the world, not by the operator.
type Step struct {
	// Name is for reports: "create orders".
	Name string
	// Do acts and does not wait. Nil only lets time pass.
	Do func(ctx context.Context, w *World) error
	// Expect fails, in words, if something does not hold that must when the world is quiet again. It is
	// called in undisturbed runs; disturbed ones are compared with those. Nil expects nothing.
	Expect func(ctx context.Context, w *World) error
	// Wait lets this much of the simulated clock pass before the world is asked to be quiet.
	Wait time.Duration

	object   client.Object // that it creates, for races
	onObject bool          // it changes one object
	early    bool          // may also happen at another moment
	again    *Step         // that follows once the object of this one is gone
}

// World is what steps act on: the simulated cluster and the external API of one run.
type World struct {
	// Client is an administrator's, without a cache.
	Client client.Client
	// ExternalAPI is nil if the scenario has none.
	ExternalAPI ExternalAPI
}
