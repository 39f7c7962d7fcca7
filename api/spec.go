package api

import (
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The types in this file are parts of the specs of components. Embed, inline, those that users may set.
// Their names, JSON and methods are those of component-operator-runtime. Package component detects the
// methods.

// PlacementSpec sets the namespace and the name from which dependents are rendered.
//
// +k8s:deepcopy-gen=true
type PlacementSpec struct {
	// Namespace is the namespace of all dependents whose manifests do not set one. It defaults
	// to the namespace of the object.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name is the name from which the names of dependents are derived. It defaults to the name
	// of the object.
	// +optional
	Name string `json:"name,omitempty"`
}

// GetDeploymentNamespace returns Namespace. Empty means the default.
func (s *PlacementSpec) GetDeploymentNamespace() string { return s.Namespace }

// GetDeploymentName returns Name. Empty means the default.
func (s *PlacementSpec) GetDeploymentName() string { return s.Name }

// ClientSpec selects the cluster of the dependents.
//
// +k8s:deepcopy-gen=true
type ClientSpec struct {
	// KubeConfig gives access to the cluster of the dependents. It defaults to the cluster of
	// the object.
	// +optional
	KubeConfig *KubeConfigSpec `json:"kubeConfig,omitempty"`
}

// KubeConfigSpec names a Secret with a kubeconfig.
//
// +k8s:deepcopy-gen=true
type KubeConfigSpec struct {
	// SecretRef names the Secret.
	SecretRef SecretKeyReference `json:"secretRef"`
}

// GetKubeConfig returns the kubeconfig. Nil means the cluster of the object. Until the reference has been
// loaded, the result is empty but not nil.
func (s *ClientSpec) GetKubeConfig() []byte {
	if s.KubeConfig == nil {
		return nil
	}
	return s.KubeConfig.SecretRef.Value()
}

// ImpersonationSpec selects the service account that is used to read and write dependents.
//
// +k8s:deepcopy-gen=true
type ImpersonationSpec struct {
	// ServiceAccountName is a service account in the namespace of the object. It defaults to the
	// operator's own identity.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// GetImpersonationUser returns the user name of the service account, with ${namespace} in place of the
// namespace of the object. Empty means the operator's own identity.
func (s *ImpersonationSpec) GetImpersonationUser() string {
	if s.ServiceAccountName == "" {
		return ""
	}
	return "system:serviceaccount:${namespace}:" + s.ServiceAccountName
}

// GetImpersonationGroups returns nil: a service account needs no explicit groups.
func (s *ImpersonationSpec) GetImpersonationGroups() []string { return nil }

// SuspensionSpec suspends the reconciliation of an object.
//
// +k8s:deepcopy-gen=true
type SuspensionSpec struct {
	// Suspend leaves the dependents unchanged. Deletion is not suspended.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// IsSuspended reports whether the dependents are left unchanged.
func (s *SuspensionSpec) IsSuspended() bool { return s.Suspend }

// RequeueSpec sets how often a ready object is reconciled.
//
// +k8s:deepcopy-gen=true
type RequeueSpec struct {
	// RequeueInterval is the time between two reconciliations without an event. It defaults to
	// the operator's setting, usually 10 minutes.
	// +optional
	RequeueInterval *metav1.Duration `json:"requeueInterval,omitempty"`
}

// GetRequeueInterval returns the interval. Zero means the default.
func (s *RequeueSpec) GetRequeueInterval() time.Duration { return durationOf(s.RequeueInterval) }

// RetrySpec sets the delay before a retry after a retriable error that does not set its own.
//
// +k8s:deepcopy-gen=true
type RetrySpec struct {
	// RetryInterval is the delay before a retry. It defaults to the requeue interval.
	// +optional
	RetryInterval *metav1.Duration `json:"retryInterval,omitempty"`
}

// GetRetryInterval returns the delay. Zero means the default.
func (s *RetrySpec) GetRetryInterval() time.Duration { return durationOf(s.RetryInterval) }

// TimeoutSpec sets how long dependents may take to become ready.
//
// +k8s:deepcopy-gen=true
type TimeoutSpec struct {
	// Timeout is how long dependents may take to become ready, counted from the last change to
	// the object or its manifests. It defaults to the requeue interval.
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// WaveTimeout is how long one wave of dependents may take to become ready, counted from when
	// it began or from the last change to the object or its manifests. By default only Timeout counts.
	// +optional
	WaveTimeout *metav1.Duration `json:"waveTimeout,omitempty"`
}

// GetTimeout returns the timeout. Zero means the default.
func (s *TimeoutSpec) GetTimeout() time.Duration { return durationOf(s.Timeout) }

// GetWaveTimeout returns the timeout of a wave. Zero means the default.
func (s *TimeoutSpec) GetWaveTimeout() time.Duration { return durationOf(s.WaveTimeout) }

func durationOf(d *metav1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.Duration
}

// PolicySpec sets the policies of dependents that have no annotation for them. An empty policy means the
// operator's default. Values may also have the form of constants of component-operator-runtime, such as
// IfUnowned for if-unowned.
//
// +k8s:deepcopy-gen=true
type PolicySpec struct {
	// AdoptionPolicy is never, if-unowned or always.
	// +optional
	AdoptionPolicy AdoptionPolicy `json:"adoptionPolicy,omitempty"`

	// UpdatePolicy is replace, ssa-merge, ssa-override or recreate.
	// +optional
	UpdatePolicy UpdatePolicy `json:"updatePolicy,omitempty"`

	// DeletePolicy is delete, orphan, orphan-on-apply or orphan-on-delete.
	// +optional
	DeletePolicy DeletePolicy `json:"deletePolicy,omitempty"`

	// MissingNamespacesPolicy is create or do-not-create.
	// +optional
	MissingNamespacesPolicy NamespacePolicy `json:"missingNamespacesPolicy,omitempty"`
}

// GetAdoptionPolicy returns the adoption policy. Empty means the default.
func (s *PolicySpec) GetAdoptionPolicy() AdoptionPolicy { return hyphenated(s.AdoptionPolicy) }

// GetUpdatePolicy returns the update policy. Empty means the default.
func (s *PolicySpec) GetUpdatePolicy() UpdatePolicy { return hyphenated(s.UpdatePolicy) }

// GetDeletePolicy returns the delete policy. Empty means the default.
func (s *PolicySpec) GetDeletePolicy() DeletePolicy { return hyphenated(s.DeletePolicy) }

// GetMissingNamespacesPolicy returns the policy for missing namespaces. Empty means the default.
func (s *PolicySpec) GetMissingNamespacesPolicy() NamespacePolicy {
	return hyphenated(s.MissingNamespacesPolicy)
}

// hyphenated turns IfUnowned into if-unowned.
func hyphenated[P ~string](policy P) P {
	var b strings.Builder
	for i, r := range string(policy) {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return P(b.String())
}
