package operator_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	described "github.com/trimtab-dev/trimtab/internal/running"
	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/testenv"
)

// describe returns what the operator says about itself.
func (o *running) describe(t *testing.T) (d described.Operator) {
	t.Helper()
	if err := json.Unmarshal([]byte(o.get(t, "debug-address", described.Path)), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// requestsOf returns the requests of a verb for a resource.
func requestsOf(d described.Operator, verb, resource string) described.Requests {
	for _, r := range d.Requests {
		if r.Verb == verb && r.Resource == resource {
			return r
		}
	}
	return described.Requests{}
}

// TestDescription: an operator says who it is and whether it works. After a permission was taken from it, it says which request was
// refused and that the permission is missing; after it was given back, that it has it.
func TestDescription(t *testing.T) {
	in := install(t, "described", nil)
	op := startOperator(t, in)
	op.awaitReady(t)
	testenv.Wait(t, in.client, in.probe(t, "orders"), "the operator to greet", greeted)
	const status = "probes.probe.trimtab.dev/status"
	// A request is counted when its answer has arrived, which may be after the watch has shown what it did.
	op.poll(t, "the answer", func() bool { return requestsOf(op.describe(t), "patch", status).Count > 0 })
	d := op.describe(t)
	if !d.Leads || d.Name != "described" || d.Lease != in.namespace+"/described" || d.Started.IsZero() {
		t.Errorf("%+v, want the leader of described", d)
	}
	if diff := cmp.Diff([]described.Controller{{Name: "probe", APIVersion: "probe.trimtab.dev/v1", Kind: "Probe"}}, d.Controllers); diff != "" {
		t.Errorf("controllers (-want +got)\n%s", diff)
	}
	if len(d.Failing) > 0 || len(d.Missing) > 0 || d.Checks < 3 {
		t.Errorf("failing %v of %d checks, missing %v; want nothing of at least 3", d.Failing, d.Checks, d.Missing)
	}
	// The server may have the client ask again while the definition is new, so there may be more than one.
	if r := requestsOf(d, "patch", status); r.Count == 0 || r.Refused != 0 || r.Last != nil {
		t.Errorf("requests %+v, want one for the status of orders, and none refused", d.Requests)
	}
	if r := requestsOf(d, "watch", "probes.probe.trimtab.dev"); r.Count == 0 {
		t.Errorf("requests %+v, want the watch of the cache", d.Requests)
	}
	op.poll(t, "the metrics to show the pass, when it has ended", func() bool {
		return strings.Contains(op.get(t, "debug-address", "/debug/metrics"), `trimtab_passes_total{controller="probe"`)
	})

	objects, err := operator.Manifests(testOperator(in.name), operator.ManifestOptions{Namespace: in.namespace})
	if err != nil {
		t.Fatal(err)
	}
	role := find[*rbacv1.ClusterRole](t, objects)
	revoked := role.DeepCopy()
	revoked.Rules = reduced(revoked.Rules, "probes/status", "patch")
	testenv.Install(t, in.cfg, revoked)
	in.probe(t, "billing")
	op.poll(t, "the refusal", func() bool { return requestsOf(op.describe(t), "patch", status).Refused > 0 })
	r := requestsOf(op.describe(t), "patch", status)
	want := described.Refusal{At: r.Last.At, Namespace: in.namespace, Name: "billing", Permission: "patch " + status + " in namespace " + in.namespace, Verdict: described.Missing}
	if diff := cmp.Diff(want, *r.Last); diff != "" || r.Last.At.Before(d.Started) {
		t.Errorf("(-want +got)\n%s", diff)
	}
	testenv.Install(t, in.cfg, role)
	op.poll(t, "the permission", func() bool { return requestsOf(op.describe(t), "patch", status).Last.Verdict == described.Permitted })
	if _, code := op.request(t, "debug-address", described.Path); code != http.StatusOK {
		t.Errorf("code %d", code)
	}
	op.stop(t, 0)
}

// TestDescriptionOfMissing: what was missing from the start is named with the command that grants it, and the check that fails.
func TestDescriptionOfMissing(t *testing.T) {
	in := install(t, "described-lacking", func(o client.Object) {
		if role, ok := o.(*rbacv1.ClusterRole); ok {
			role.Rules = reduced(role.Rules, "probes/status", "patch")
		}
	})
	op := startOperator(t, in)
	op.await(t, "/readyz", "permissions: not permitted", http.StatusServiceUnavailable)
	d := op.describe(t)
	if diff := cmp.Diff([]string{"patch probes.probe.trimtab.dev/status"}, d.Missing); diff != "" {
		t.Errorf("missing (-want +got)\n%s", diff)
	}
	if want := "described-lacking manifests rbac --namespace " + in.namespace; !strings.HasPrefix(d.Grant, want) {
		t.Errorf("grant with %q, want %q", d.Grant, want)
	}
	if !slices.ContainsFunc(d.Failing, func(c described.Check) bool {
		return c.Endpoint == "readyz" && c.Name == "permissions" && strings.Contains(c.Problem, d.Missing[0])
	}) {
		t.Errorf("failing %+v, want the check of permissions", d.Failing)
	}
	op.stop(t, 0)
}
