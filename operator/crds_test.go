package operator

import "testing"

// TestPlural: roles name resources as Kubernetes and its well-known extensions do.
func TestPlural(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{
		"Deployment": "deployments", "Ingress": "ingresses", "NetworkPolicy": "networkpolicies", "Gateway": "gateways", "Key": "keys", "Prometheus": "prometheuses",
	} {
		if got := plural(kind); got != want {
			t.Errorf("%s: %s, want %s", kind, got, want)
		}
	}
}
