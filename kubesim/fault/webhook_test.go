package fault

import (
	"net/http"
	"slices"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
)

// TestWebhooks proves that an operator with webhooks is played without certificates, and that a note says once what
// is left out.
func TestWebhooks(t *testing.T) {
	s := toyLife("")
	toy := s.Operator.SetUp
	s.Operator.SetUp = func(mgr ctrl.Manager, env *Env) error {
		mgr.GetWebhookServer().Register("/validate-toys", http.NotFoundHandler())
		if err := mgr.AddReadyzCheck("webhook", mgr.GetWebhookServer().StartedChecker()); err != nil {
			return err
		}
		return toy(mgr, env)
	}
	r := Explore(t, s, Only(Crashes))
	for _, text := range r.texts() {
		t.Error(text)
	}
	const want = "the operator's webhooks are not called (/validate-toys): steps create what they would let through, with the defaults that they would set"
	if n := len(slices.DeleteFunc(slices.Clone(r.Notes), func(n string) bool { return n != want })); n != 1 {
		t.Errorf("%d times %q in %q", n, want, r.Notes)
	}
}
