// Package wrong is looked at by a test of trimtab lint. It imports little, because all of it is looked at, too.
package wrong

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Options are here to make this a package that knows Kubernetes.
type Options metav1.ListOptions

//trimtab:allow nothing because there is no such analyzer
