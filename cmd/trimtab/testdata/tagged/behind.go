//go:build x && y

package tagged

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Others are compiled with both tags alone.
type Others metav1.ListOptions

//trimtab:allow nothing because there is no such analyzer
