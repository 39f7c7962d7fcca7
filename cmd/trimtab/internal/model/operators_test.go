package model_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
)

// leads is an operator with a lease that a process holds. Its role is for the status of a kind.
func leads(name, holder, group, resource string) string {
	return fmt.Sprintf(`apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s-NS}
rules: [{apiGroups: [%[3]s], resources: [%[4]s/status], verbs: [patch]}]
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: %[1]s-NS}
spec: {holderIdentity: %[2]s, leaseDurationSeconds: 3600, renewTime: %[5]q}`, name, holder, group, resource, time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"))
}

// podWith is the Pod of an operator with flags.
func podWith(name, flags string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %s}
spec: {schedulerName: nobody, containers: [{name: manager, image: x, args: [manager, %s]}]}`, name, flags)
}

// TestOperators: operators are known by their leases, also several of one kind and one of several, and the command that makes the leader's debug address
// reachable is for the port that its flags say.
func TestOperators(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(strings.Join([]string{
		leads("one", "one-1_u1", "probe.trimtab.dev", "probes"), `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: one-NS}
rules: [{apiGroups: [things.trimtab.dev], resources: [things/status], verbs: [patch]}]`, podWith("one-1", "--leader-elect"),
		leads("two", "two-1_u2", "probe.trimtab.dev", "probes"), podWith("two-1", "--debug-address=127.0.0.1:9001"),
		leads("three", "three-1_u3", "things.trimtab.dev", "things"), podWith("three-1", `--debug-address, "[::1]:9002"`),
		leads("off", "off-1_u4", "things.trimtab.dev", "things"), podWith("off-1", `--debug-address=0`),
		leads("laptop", "laptop_u5", "things.trimtab.dev", "things"), leads("released", `""`, "things.trimtab.dev", "things"),
	}, "\n---\n"))
	c := w.cluster(w.cfg)
	all := slices.DeleteFunc(c.Operators(t.Context()), func(o model.Operator) bool { return o.Namespace != w.namespace })
	got := map[string]string{}
	for _, op := range all {
		said, port, err := c.Reach(t.Context(), op)
		if err != nil {
			said = err.Error()
		}
		name, _ := strings.CutSuffix(op.Name, "-"+w.namespace)
		got[name] = strings.ReplaceAll(strings.Join([]string{strings.Join(op.Kinds, " "), said, port}, "; "), w.namespace, "NS")
		if name != "released" && (!op.Leads || op.Renewed.IsZero()) {
			t.Errorf("%+v, want one that leads", op)
		}
	}
	want := map[string]string{
		"one":      "Probe Thing; kubectl port-forward pod/one-1 8082:8082 -n NS; 8082",
		"two":      "Probe; kubectl port-forward pod/two-1 9001:9001 -n NS; 9001",
		"three":    "Thing; kubectl port-forward pod/three-1 9002:9002 -n NS; 9002",
		"off":      "Thing; it runs with --debug-address 0; start it without that flag; ",
		"laptop":   "Thing; its leader laptop_u5 is no Pod of namespace NS; use the debug-address that it logs when it starts, on the machine that it runs on; ",
		"released": "Thing; operator NS/released-NS does not run; ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
