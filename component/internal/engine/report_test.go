package engine

import "testing"

// TestPredicate: a message about what is waited for is a sentence.
func TestPredicate(t *testing.T) {
	t.Parallel()
	for why, want := range map[string]string{
		"not ready":                  "is not ready",
		"being deleted":              "is being deleted",
		"waiting for itself":         "is waiting for itself",
		"failed":                     "has failed",
		"belongs to another":         "belongs to another",
		"is not ready: Replicas 0/2": "is not ready: Replicas 0/2",
	} {
		if got := predicate(why); got != want {
			t.Errorf("%q becomes %q, want %q", why, got, want)
		}
	}
}
