package component

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
)

// A component, or its spec, configures its treatment by implementing the interfaces below. The spec is the
// result of [Component.GetSpec], or the field Spec of an [Object] without this method. If both implement an
// interface, the component's implementation is used. Package api has types to embed in specs.

// PlacementConfiguration is implemented by components that say where their dependents go. See
// [api.PlacementSpec].
type PlacementConfiguration interface {
	// GetDeploymentNamespace returns the namespace of dependents that name none. Empty means the
	// component's namespace.
	GetDeploymentNamespace() string
	// GetDeploymentName returns the base of the dependents' names. Empty means the component's name.
	GetDeploymentName() string
}

// ClientConfiguration is implemented by components whose dependents are in another cluster. See
// [api.ClientSpec].
type ClientConfiguration interface {
	// GetKubeConfig returns the content of a kubeconfig. Nil means the component's cluster. An empty
	// result that is not nil means that the kubeconfig is missing. A deletion waits for it.
	GetKubeConfig() []byte
}

// ImpersonationConfiguration is implemented by components whose dependents are read and written as
// another user. See [api.ImpersonationSpec]. With a [ClientConfiguration], the user of the kubeconfig
// impersonates that user.
type ImpersonationConfiguration interface {
	// GetImpersonationUser returns the user, such as system:serviceaccount:shop:deployer. Empty
	// means that no user is impersonated. ${namespace} stands for the component's namespace.
	GetImpersonationUser() string
	// GetImpersonationGroups returns the groups. Nil means that none are impersonated.
	GetImpersonationGroups() []string
}

// RequeueConfiguration is implemented by components that say how often they are reconciled without an
// event. See [api.RequeueSpec].
type RequeueConfiguration interface {
	// GetRequeueInterval returns the time between two passes over a component that is ready. It
	// should be more than a minute. Zero means [Options.RequeueInterval].
	GetRequeueInterval() time.Duration
}

// RetryConfiguration is implemented by components that say when a [RetriableError] is retried. See
// [api.RetrySpec].
type RetryConfiguration interface {
	// GetRetryInterval returns the delay. It should be more than a minute. Zero means the requeue
	// interval.
	GetRetryInterval() time.Duration
}

// TimeoutConfiguration is implemented by components that say how long their dependents may take to
// become ready. See [api.TimeoutSpec].
type TimeoutConfiguration interface {
	// GetTimeout returns the time from the last change of the component or of its manifests. It
	// should be more than a minute. Zero means [Options.Timeout], or else the requeue interval.
	GetTimeout() time.Duration
}

// WaveTimeoutConfiguration is implemented by components that say how long a wave of their dependents may take.
// See [api.TimeoutSpec].
type WaveTimeoutConfiguration interface {
	// GetWaveTimeout returns the time from the start of the wave, or from the last change of the component
	// or of its manifests if that is later. It should be more than a minute. Zero means
	// [Options.WaveTimeout].
	GetWaveTimeout() time.Duration
}

// SuspensionConfiguration is implemented by components that can be suspended. See [api.SuspensionSpec].
type SuspensionConfiguration interface {
	// IsSuspended reports whether the dependents are left as they are. Deletion is not suspended.
	IsSuspended() bool
}

// PolicyConfiguration is implemented by components that set policies of dependents without an annotation. An
// empty policy means the operator's default. See [api.PolicySpec].
type PolicyConfiguration interface {
	GetAdoptionPolicy() api.AdoptionPolicy
	GetUpdatePolicy() api.UpdatePolicy
	GetDeletePolicy() api.DeletePolicy
	GetMissingNamespacesPolicy() api.NamespacePolicy
}

// configured returns the implementation of an interface that counts for a component.
func configured[I any](obj client.Object) (I, bool) {
	if i, ok := obj.(I); ok {
		return i, true
	}
	i, ok := specOf(obj).(I)
	return i, ok
}

// specOf returns the spec of a component; nil if it has none.
func specOf(obj client.Object) any {
	if c, ok := obj.(interface{ GetSpec() Unstructurable }); ok {
		return c.GetSpec()
	}
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil
	}
	if spec := v.Elem().FieldByName("Spec"); spec.IsValid() && spec.CanAddr() && spec.CanInterface() {
		if spec.Kind() == reflect.Pointer {
			return spec.Interface()
		}
		return spec.Addr().Interface()
	}
	return nil
}

// configuration is what a component says of how it is treated, with the operator's defaults.
type configuration struct {
	Namespace, Name         string
	Requeue, Retry, Timeout time.Duration
	WaveTimeout             time.Duration
	Suspended               bool
	Policies                api.Policies
	MissingNamespaces       api.NamespacePolicy

	short []string // intervals that are below a minute
}

// configurationOf asks a component. The error names everything that is wrong.
func (o Options[T]) configurationOf(obj T) (configuration, error) {
	c := configuration{
		Namespace: obj.GetNamespace(), Name: obj.GetName(), Requeue: o.requeue(), Timeout: o.Timeout,
		WaveTimeout: o.WaveTimeout,
		Policies:    o.policies(), MissingNamespaces: o.Namespaces,
	}
	if p, ok := configured[PlacementConfiguration](obj); ok {
		c.Namespace = cmp.Or(p.GetDeploymentNamespace(), c.Namespace)
		c.Name = cmp.Or(p.GetDeploymentName(), c.Name)
	}
	if s, ok := configured[SuspensionConfiguration](obj); ok {
		c.Suspended = s.IsSuspended()
	}
	if p, ok := configured[PolicyConfiguration](obj); ok {
		c.Policies.AdoptionPolicy = cmp.Or(p.GetAdoptionPolicy(), c.Policies.AdoptionPolicy)
		c.Policies.UpdatePolicy = cmp.Or(p.GetUpdatePolicy(), c.Policies.UpdatePolicy)
		c.Policies.DeletePolicy = cmp.Or(p.GetDeletePolicy(), c.Policies.DeletePolicy)
		c.MissingNamespaces = cmp.Or(p.GetMissingNamespacesPolicy(), c.MissingNamespaces)
	}
	var problems []error
	interval := func(name string, said, otherwise time.Duration) time.Duration {
		switch {
		case said < 0:
			problems = append(problems, fmt.Errorf("the %s %s is negative; use a positive one, or none for %s", name, said, otherwise))
		case said > 0 && said < time.Minute:
			c.short = append(c.short, fmt.Sprintf("the %s %s is less than a minute: it is meant for tests", name, said))
		}
		return cmp.Or(max(said, 0), otherwise)
	}
	if r, ok := configured[RequeueConfiguration](obj); ok {
		c.Requeue = interval("requeue interval", r.GetRequeueInterval(), c.Requeue)
	}
	c.Retry = c.Requeue
	if r, ok := configured[RetryConfiguration](obj); ok {
		c.Retry = interval("retry interval", r.GetRetryInterval(), c.Requeue)
	}
	c.Timeout = cmp.Or(c.Timeout, c.Requeue)
	if t, ok := configured[TimeoutConfiguration](obj); ok {
		c.Timeout = interval("timeout", t.GetTimeout(), c.Timeout)
	}
	if t, ok := configured[WaveTimeoutConfiguration](obj); ok {
		c.WaveTimeout = interval("wave timeout", t.GetWaveTimeout(), c.WaveTimeout)
	}
	problems = append(problems, checkPolicies(c.Policies, c.MissingNamespaces))
	return c, errors.Join(problems...)
}

// checkPolicies reports policies that do not exist.
func checkPolicies(p api.Policies, n api.NamespacePolicy) error {
	return errors.Join(
		oneOf("reconcile policy", p.ReconcilePolicy, api.ReconcilePolicyOnObjectChange, api.ReconcilePolicyOnObjectOrComponentChange, api.ReconcilePolicyOnce),
		oneOf("conflict policy", p.ConflictPolicy, "", api.ConflictPolicyForce, api.ConflictPolicyFail),
		oneOf("immutable policy", p.ImmutablePolicy, "", api.ImmutablePolicyFail, api.ImmutablePolicyRecreate),
		oneOf("mode", p.Mode, "", api.ModeFull, api.ModeDetectOnly, api.ModeSuspended),
		oneOf("adoption policy", p.AdoptionPolicy, api.AdoptionPolicyNever, api.AdoptionPolicyIfUnowned, api.AdoptionPolicyAlways),
		oneOf("update policy", p.UpdatePolicy, api.UpdatePolicyReplace, api.UpdatePolicySsaMerge, api.UpdatePolicySsaOverride, api.UpdatePolicyRecreate),
		oneOf("delete policy", p.DeletePolicy, api.DeletePolicyDelete, api.DeletePolicyOrphan, api.DeletePolicyOrphanOnApply, api.DeletePolicyOrphanOnDelete),
		oneOf("policy for missing namespaces", n, "", api.NamespacePolicyCreate, api.NamespacePolicyDoNotCreate),
	)
}

func oneOf[P ~string](what string, value P, valid ...P) error {
	if slices.Contains(valid, value) {
		return nil
	}
	var names []string
	for _, v := range valid {
		if v != "" {
			names = append(names, string(v))
		}
	}
	return fmt.Errorf("the %s %q does not exist; use one of %s", what, value, strings.Join(names, ", "))
}
