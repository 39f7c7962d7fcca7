package api

import (
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The types of this file are parts of the specs of components. Embed those that users may set, inline.
// Their names, their JSON and their methods are those of component-operator-runtime; package component
// finds the methods.

// PlacementSpec says where dependents go and what they are named after.
//
// +k8s:deepcopy-gen=true
type PlacementSpec struct {
	// Namespace is where dependents go that name no namespace. The default is that of the
	// object.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name is what dependents are named after. The default is the name of the object.
	// +optional
	Name string `json:"name,omitempty"`
}

// GetDeploymentNamespace returns the namespace; empty is the default.
func (s *PlacementSpec) GetDeploymentNamespace() string { return s.Namespace }

// GetDeploymentName returns the name; empty is the default.
func (s *PlacementSpec) GetDeploymentName() string { return s.Name }

// ClientSpec says in which cluster dependents are.
//
// +k8s:deepcopy-gen=true
type ClientSpec struct {
	// KubeConfig is for another cluster. The default is the cluster of the object.
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

// GetKubeConfig returns the kubeconfig; nil is the cluster of the object. It is empty, not nil, until the
// reference was loaded.
func (s *ClientSpec) GetKubeConfig() []byte {
	if s.KubeConfig == nil {
		return nil
	}
	return s.KubeConfig.SecretRef.Value()
}

// ImpersonationSpec says as whom dependents are written.
//
// +k8s:deepcopy-gen=true
type ImpersonationSpec struct {
	// ServiceAccountName is a service account in the namespace of the object. The default is the
	// operator itself.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// GetImpersonationUser returns the user name of the service account, in which ${namespace} stands for
// the namespace of the object; empty is the operator itself.
func (s *ImpersonationSpec) GetImpersonationUser() string {
	if s.ServiceAccountName == "" {
		return ""
	}
	return "system:serviceaccount:${namespace}:" + s.ServiceAccountName
}

// GetImpersonationGroups returns nil: those of the service account.
func (s *ImpersonationSpec) GetImpersonationGroups() []string { return nil }

// SuspensionSpec stops the work on an object.
//
// +k8s:deepcopy-gen=true
type SuspensionSpec struct {
	// Suspend leaves the dependents as they are. Deletion is not suspended.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// IsSuspended reports whether dependents are left as they are.
func (s *SuspensionSpec) IsSuspended() bool { return s.Suspend }

// RequeueSpec says how often an object that is ready is reconciled.
//
// +k8s:deepcopy-gen=true
type RequeueSpec struct {
	// RequeueInterval is the time between two reconciliations without an event. The default is
	// the operator's, usually 10 minutes.
	// +optional
	RequeueInterval *metav1.Duration `json:"requeueInterval,omitempty"`
}

// GetRequeueInterval returns the interval; zero is the default.
func (s *RequeueSpec) GetRequeueInterval() time.Duration { return durationOf(s.RequeueInterval) }

// RetrySpec says when something that can be retried is retried.
//
// +k8s:deepcopy-gen=true
type RetrySpec struct {
	// RetryInterval is the delay. The default is the requeue interval.
	// +optional
	RetryInterval *metav1.Duration `json:"retryInterval,omitempty"`
}

// GetRetryInterval returns the delay; zero is the default.
func (s *RetrySpec) GetRetryInterval() time.Duration { return durationOf(s.RetryInterval) }

// TimeoutSpec says how long dependents may take to become ready.
//
// +k8s:deepcopy-gen=true
type TimeoutSpec struct {
	// Timeout counts from the last change of the object or of its manifests. The default is the
	// requeue interval.
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// GetTimeout returns the timeout; zero is the default.
func (s *TimeoutSpec) GetTimeout() time.Duration { return durationOf(s.Timeout) }

func durationOf(d *metav1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.Duration
}

// PolicySpec says how dependents are treated that have no annotation. What is empty is the operator's
// default. Values may be written as constants of component-operator-runtime are: IfUnowned is if-unowned.
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

// GetAdoptionPolicy returns the policy; empty is the default.
func (s *PolicySpec) GetAdoptionPolicy() AdoptionPolicy { return hyphenated(s.AdoptionPolicy) }

// GetUpdatePolicy returns the policy; empty is the default.
func (s *PolicySpec) GetUpdatePolicy() UpdatePolicy { return hyphenated(s.UpdatePolicy) }

// GetDeletePolicy returns the policy; empty is the default.
func (s *PolicySpec) GetDeletePolicy() DeletePolicy { return hyphenated(s.DeletePolicy) }

// GetMissingNamespacesPolicy returns the policy; empty is the default.
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
