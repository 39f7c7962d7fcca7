// Package target knows the clusters where dependents are. A [Target] is one API server as one user sees
// it: its client, its cache, its kinds. Components with the same kubeconfig and the same user share one,
// which is stopped when nobody needs it any more.
package target
