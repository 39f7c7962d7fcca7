package engine

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/loop"
)

// clusterNeed is the permission to read the identity.
func clusterNeed() loop.Need {
	return loop.Need{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Namespace"), Verbs: []string{"get"},
		Names: []string{metav1.NamespaceSystem}, ClusterWide: true,
	}
}

// recordNeed is the permission that the operator's admission policy for records checks.
func recordNeed() loop.Need {
	return loop.Need{GroupVersionKind: api.RecordKind().WithVersion("v1"), Verbs: []string{"update"}, ClusterWide: true}
}
