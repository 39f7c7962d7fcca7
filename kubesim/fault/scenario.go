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

// Scenario is an operator, the external API that it calls, and what users do. It is played many times, so
// nothing in it may keep state between runs.
type Scenario struct {
	// Name is part of replay tokens. Required.
	Name string
	// Operator is the operator under test. Its SetUp is required.
	Operator Operator
	// ExternalAPI returns a new in-memory fake of the external API that the operator calls. Nil means
	// that it calls none.
	ExternalAPI func() ExternalAPI
	// Replicas is the number of processes, with leader election. 0 means 1.
	Replicas int
	// Actors are other controllers of the cluster, such as those of package actors. None means that Deployments
	// and Pods never become ready.
	Actors []Actor
	// Before happens before the operator starts: what the operator needs to start, such as a Secret of its
	// installation. Nobody edits or deletes it, unless Races does. Only actions, no waits or expectations.
	Before []Step
	// Steps happen one after another, each when the cluster is at rest again.
	Steps []Step
	// Races are what users may do in addition, at any moment. Nil means to delete each object that a
	// step creates, to delete and recreate it, and to make the changes of Merge steps early. What the
	// operator neither writes nor reconciles, and what objects that are created later may depend on, is
	// not deleted then. If Do gets
	// the error NotFound, the user does nothing at that moment.
	Races []Step
	// Quiet is for how long nothing must change before the cluster counts as being at rest. 0 means
	// 30 s of the simulated clock. After the last step it is at least that long.
	Quiet time.Duration
	// Patience is the operator's time limit: how long after a fault the state may differ from that of
	// the undisturbed run. 0 means 30 minutes of the simulated clock.
	Patience time.Duration
	// Reads is the number of reads of the external API per hour that are allowed at rest. 0 means any
	// number.
	Reads int
	// Lag is for how long reads of the external API may not show a change. 0 means that they always
	// do. It needs an ExternalAPI that is a [Cloner].
	Lag time.Duration
	// Shared lists kinds of users' objects whose content the operator is meant to change, such as
	// "deployments.apps" or "configmaps". Invariant I10 forbids such changes for kinds that are not
	// the operator's own.
	Shared []string
	// Secrets lists values that may appear only in Secrets and in the external API (invariant I14), such
	// as the password in a Secret that a step creates. Errors of calls to the external API then
	// quote the first of them as the password of a URL, as many client libraries do.
	Secrets []string
	// Foreign lists fields that others own and that are not compared, such as "status.lastSeen" or
	// "metadata.annotations.example.com/at". "status.conditions.[Failed=False]" is a condition in one state.
	Foreign []string
}

// Operator says how the operator under test is installed and what its main does. For an operator of
// trimtab, operatortest.Simulated returns it.
type Operator struct {
	// CRDs contains the CustomResourceDefinitions as YAML files in any folder, for example
	// os.DirFS("config/crd/bases"). Nil means none.
	CRDs fs.FS
	// RBAC contains the operator's Roles and ClusterRoles as YAML files, for example
	// os.DirFS("config/rbac"). The operator has the roles that bindings in these files name, or all
	// of them if there are no bindings, and invariant I15 compares them with its requests. Nil
	// makes it an administrator.
	RBAC fs.FS
	// Webhooks contains the operator's MutatingWebhookConfigurations and ValidatingWebhookConfigurations as
	// YAML files, for example os.DirFS("config/webhook"). Those among CRDs and RBAC count, too. The webhooks
	// that SetUp registers are called in the process, for the requests that match; their addresses and
	// certificates are ignored. If there is no configuration at all, a webhook is called for CREATE and
	// UPDATE of the kind in its path, such as /validate-example-com-v1-shop.
	Webhooks fs.FS
	// Justified lists permissions that are intended although no scenario uses them, such as "list
	// secrets" or "patch events.events.k8s.io", in addition to those in annotations of the roles.
	Justified []string
	// AddToScheme registers the operator's types. Nil means that there are none besides client-go's.
	AddToScheme func(*runtime.Scheme) error
	// Manager configures the manager as the operator's main does: cache, leader election and
	// so on. Scheme, addresses, webhook server and logger are overwritten.
	Manager manager.Options
	// Ignored lists fields that may differ at the end of a run because the operator stores times or
	// counters in them, in the form of [Scenario].Foreign.
	Ignored []string
	// SetUp sets up one process, as the operator's main does between creating the manager and
	// starting it. It is called for each start, so everything it uses must be new each time.
	SetUp func(mgr ctrl.Manager, env *Env) error
}

// ExternalAPI is an in-memory fake of the API whose resources the operator manages. It must be safe for
// concurrent use.
type ExternalAPI interface {
	// Resources returns all existing resources, in any order. Invariants are checked on them.
	Resources() []Resource
}

// Cloner is an [ExternalAPI] that can be copied. Runs with a crash then start at the crash instead of at
// the first step, and reads can show an earlier state.
type Cloner interface {
	ExternalAPI
	Clone() ExternalAPI
}

// Resource is an external resource in the list of a fake.
type Resource struct {
	// Kind and ID identify the resource, for example "stream" and "orders".
	Kind, ID string
	// Owner is the UID or the namespace/name of the object for which the operator created the resource,
	// or only the name for kinds without namespaces. Empty means that it is not the operator's.
	Owner string
	// State is what matters to users. It must be the same in each undisturbed run.
	State string
	// Ready means that the resource works.
	Ready bool
}

// Step is something that happens in the cluster or the external API and that the operator does not do.
type Step struct {
	// Name appears in reports, for example "create orders".
	Name string
	// Do acts and does not wait. Nil means that only time passes.
	Do func(ctx context.Context, w *World) error
	// Expect returns an error if the state is wrong when the cluster is at rest again. In disturbed runs it is called
	// until it returns nil or the operator's time limit is over, from several goroutines at once for several runs; it
	// is not called if users delete or change objects besides the steps. Nil expects nothing.
	Expect func(ctx context.Context, w *World) error
	// Wait is how long to wait on the simulated clock after Do, before the cluster must come to rest.
	Wait time.Duration

	by       string        // the actor, if it is not a user
	object   client.Object // that it creates, for races
	onObject bool          // it changes one object
	early    bool          // may also happen at another moment
	changed  client.Object // that it changes or deletes
	patch    string        // by this merge patch
	victim   client.Object // that a race which nobody named deletes
	again    *Step         // that follows once the object of this one is gone
	wrong    error         // why it cannot be played
	refused  bool          // the API server refuses what it does
}

// World is the simulated cluster and the external API of one run.
type World struct {
	// Client is a client of an administrator, without a cache.
	Client client.Client
	// ExternalAPI is nil if the scenario has none.
	ExternalAPI ExternalAPI
}
