package operator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/testenv"
	"github.com/trimtab-dev/trimtab/trace"
	"github.com/trimtab-dev/trimtab/trace/tracetest"
)

// TestMain runs the operator instead of the tests in the processes that the tests start.
func TestMain(m *testing.M) {
	if name := os.Getenv(asOperator); name != "" {
		operator.Main(testOperator(name))
	}
	ctrllog.SetLogger(logr.Discard()) // of the tests' own clients
	os.Exit(m.Run())
}

// installed is an operator's account on a server, with what its manifests grant.
type installed struct {
	name, namespace string
	cfg             *rest.Config // the administrator's
	client          client.WithWatch
	kubeconfig      string // the operator's own
}

// install applies the manifests of an operator of its own name, changed by change, all but
// the Deployment.
func install(t *testing.T, name string, change func(client.Object)) installed {
	t.Helper()
	return installWith(t, name, change, func(string) []string { return nil })
}

// installWith installs for a manager that runs with the flags that args returns, given the
// operator's namespace.
func installWith(t *testing.T, name string, change func(client.Object), args func(namespace string) []string) installed {
	t.Helper()
	cfg := testenv.Start(t)
	in := installed{name: name, cfg: cfg, namespace: testenv.Namespace(t, cfg), client: testenv.Client(t, cfg, probe.AddToScheme)}
	objects, err := operator.Manifests(testOperator(name), operator.ManifestOptions{Namespace: in.namespace, Args: args(in.namespace)})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		switch o.(type) {
		case *corev1.Namespace, interface{ GetPodTemplate() }:
			continue
		}
		if o.GetObjectKind().GroupVersionKind().Kind == "Deployment" {
			continue
		}
		if change != nil {
			change(o)
		}
		testenv.Install(t, cfg, o)
	}
	in.kubeconfig = writeKubeconfig(t, cfg, token(t, in), in.namespace)
	return in
}

// probe creates an object.
// probe creates an object, which is deleted when the test ends: the operators of later tests watch all
// namespaces.
func (in installed) probe(t *testing.T, name string) *probe.Probe {
	t.Helper()
	p := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: in.namespace, Name: name}}
	if err := in.client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := in.client.Delete(ctx, p.DeepCopy()); client.IgnoreNotFound(err) != nil {
			t.Errorf("delete Probe %s: %v", name, err)
		}
	})
	return p
}

func greeted(p *probe.Probe) bool { return p.Status.Note != "" }

func TestOperatorUnderItsOwnRoles(t *testing.T) {
	in := install(t, "own-roles", nil)
	traceFile := filepath.Join(t.TempDir(), "trace.jsonl")
	op := startOperator(t, in, "--greeting", "ahoy", "--trace", traceFile)
	op.awaitReady(t)

	orders := in.probe(t, "orders")
	seen := testenv.Wait(t, in.client, orders, "the operator to greet", greeted)
	if seen.Status.Note != "ahoy, orders" {
		t.Errorf("note %q; the operator's own flag did not arrive", seen.Status.Note)
	}
	if lease := in.lease(t); lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		t.Error("works without holding the lease")
	}
	in.awaitEvent(t, "orders")

	if body := op.get(t, "metrics-address", "/metrics"); !strings.Contains(body, `controller_runtime_reconcile_total{controller="probe"`) {
		t.Errorf("metrics do not show the passes:\n%s", body)
	}
	if body := op.get(t, "health-address", "/livez"); body != "ok\n" {
		t.Errorf("not alive: %s", body)
	}
	checkTrace(t, "/debug/trace", strings.NewReader(op.get(t, "debug-address", "/debug/trace?kind=Probe&name=orders&namespace="+in.namespace)))
	if other := op.get(t, "debug-address", "/debug/trace?name=nobody"); other != "" {
		t.Errorf("records of an object that does not exist: %s", other)
	}

	op.stop(t, 0)
	f, err := os.Open(traceFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	checkTrace(t, "--trace", f)
	if lease := in.lease(t); lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" {
		t.Errorf("the lease is still held by %s; another replica would wait for it to expire", *lease.Spec.HolderIdentity)
	}
	if log := op.log(); strings.Contains(log, "forbidden: User") || strings.Contains(log, "leader election lost") || !strings.Contains(log, `"stopped"`) {
		t.Errorf("want no denied request and an end without alarm; log:\n%s", log)
	}
}

func TestWatchNamespaces(t *testing.T) {
	in := installWith(t, "some-namespaces", nil, func(own string) []string { return []string{"--watch-namespaces", own} })
	elsewhere := in
	elsewhere.namespace = testenv.Namespace(t, in.cfg)
	ignored := elsewhere.probe(t, "ignored")
	op := startOperator(t, in, "--watch-namespaces", in.namespace)
	op.awaitReady(t) // its role is bound in its own namespace alone
	testenv.Wait(t, in.client, in.probe(t, "orders"), "the operator to greet", greeted)
	if err := in.client.Get(t.Context(), client.ObjectKeyFromObject(ignored), ignored); err != nil {
		t.Fatal(err)
	}
	if greeted(ignored) {
		t.Error("the operator worked on an object outside its namespaces")
	}
}

func checkTrace(t *testing.T, where string, r io.Reader) {
	t.Helper()
	var records []trace.Record
	for rec, err := range trace.Decode(r) {
		if err != nil {
			t.Errorf("%s: %v", where, err)
			continue
		}
		records = append(records, rec)
	}
	starts, ends := tracetest.Events[trace.Start](records), tracetest.Events[trace.End](records)
	if len(starts) == 0 || len(starts) != len(ends) {
		t.Errorf("%s: %d passes began and %d ended:\n%s", where, len(starts), len(ends), trace.Transcript(records))
	}
}

// Each row takes one permission from the generated role. The operator must say so, and go
// on without a restart when it is granted.
func TestMissingPermissionIsNamed(t *testing.T) {
	without := func(resource, verb string) func(client.Object) {
		return func(o client.Object) {
			switch role := o.(type) {
			case *rbacv1.ClusterRole:
				role.Rules = reduced(role.Rules, resource, verb)
			case *rbacv1.Role:
				role.Rules = reduced(role.Rules, resource, verb)
			}
		}
	}
	tests := map[string]struct {
		why            string
		resource, verb string
		want           string
	}{
		"write":  {why: "fails in passes only, so nobody would look", resource: "probes/status", verb: "patch", want: "permissions: not permitted: patch probes.probe.trimtab.dev/status;"},
		"watch":  {why: "nothing works", resource: "probes", verb: "watch", want: "cache: Probe.probe.trimtab.dev: probes.probe.trimtab.dev is forbidden"},
		"source": {why: "its changes would be missed", resource: "configmaps", verb: "list", want: "permissions: not permitted: list configmaps;"},
		"events": {why: "client-go drops what it may not write", resource: "events", verb: "create", want: "not permitted: create events.events.k8s.io;"},
		"lease":  {why: "it would wait for ever to become the leader", resource: "leases", verb: "update", want: "not permitted: update leases.coordination.k8s.io/missing-lease in namespace "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := install(t, "missing-"+name, without(tt.resource, tt.verb))
			op := startOperator(t, in)
			t.Log(tt.why)
			op.await(t, "/readyz", tt.want, http.StatusServiceUnavailable)
			op.await(t, "/readyz", "grant with: missing-"+name+" manifests rbac --namespace "+in.namespace+" | kubectl apply --server-side -f -", http.StatusServiceUnavailable)
			p := in.probe(t, "orders")
			in.grant(t)
			op.awaitReady(t)
			testenv.Wait(t, in.client, p, "the operator to greet", greeted)
			op.stop(t, 0)
		})
	}
}

// reduced is rules without the right to use verbs on resource.
func reduced(rules []rbacv1.PolicyRule, resource string, verbs ...string) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, r := range rules {
		if slices.Contains(r.Resources, resource) && len(r.Verbs) > 0 {
			r.Verbs = slices.DeleteFunc(slices.Clone(r.Verbs), func(v string) bool { return slices.Contains(verbs, v) })
		}
		if len(r.Verbs) > 0 {
			out = append(out, r)
		}
	}
	return out
}

// grant applies the complete roles.
func (in installed) grant(t *testing.T) {
	t.Helper()
	objects, err := operator.Manifests(testOperator(in.name), operator.ManifestOptions{Namespace: in.namespace})
	if err != nil {
		t.Fatal(err)
	}
	testenv.Install(t, in.cfg, find[*rbacv1.ClusterRole](t, objects), find[*rbacv1.Role](t, objects))
}

// An operator that cannot fill its caches has nothing to finish.
func TestStopWhileCachesAreFilled(t *testing.T) {
	in := install(t, "no-cache", func(o client.Object) {
		if role, ok := o.(*rbacv1.ClusterRole); ok {
			role.Rules = reduced(role.Rules, "probes", "list", "watch")
		}
	})
	op := startOperator(t, in)
	op.await(t, "/readyz", "cache: Probe.probe.trimtab.dev: probes.probe.trimtab.dev is forbidden", http.StatusServiceUnavailable)
	op.await(t, "/readyz", "manager: starting", http.StatusServiceUnavailable)
	op.stop(t, 0)
}

// A standby is ready, and takes over when the leader ends.
func TestStandbyTakesOver(t *testing.T) {
	in := install(t, "standby", nil)
	first := startOperator(t, in, "--greeting", "first")
	first.awaitReady(t)
	testenv.Wait(t, in.client, in.probe(t, "one"), "the first replica to greet", greeted)
	second := startOperator(t, in, "--greeting", "second")
	second.awaitReady(t)
	first.stop(t, 0)
	seen := testenv.Wait(t, in.client, in.probe(t, "two"), "the second replica to greet", greeted)
	if seen.Status.Note != "second, two" {
		t.Errorf("note %q, want the second replica's", seen.Status.Note)
	}
	second.stop(t, 0)
}

// A pass that is under way when the process is told to stop finishes, its status included.
func TestPassUnderWayFinishes(t *testing.T) {
	in := install(t, "graceful", nil)
	end := filepath.Join(t.TempDir(), "end")
	op := startOperator(t, in, "--watch-namespaces", in.namespace, "--until", end, "--shutdown-timeout", "1m")
	op.awaitReady(t)
	p := in.probe(t, "slow")
	op.awaitPass(t)
	op.terminate(t)
	op.poll(t, "the operator to stop", func() bool { return strings.Contains(op.log(), "Stopping and waiting for leader election runnables") })
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	op.stopped(t, 0)
	if err := in.client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		t.Fatal(err)
	}
	if p.Status.Note != "hello, slow" {
		t.Errorf("note %q; the pass was cut off; log:\n%s\ntrace:\n%s", p.Status.Note, op.log(), op.out())
	}
}

// A pass that ignores its context is reported while it hangs, and cannot hold up the end.
func TestStuckPass(t *testing.T) {
	in := install(t, "stuck", nil)
	op := startOperator(t, in, "--hang", "--stuck-after", "200ms", "--shutdown-timeout", "500ms")
	op.awaitReady(t)
	in.probe(t, "stuck")
	op.await(t, "/livez", " ago and may take 200ms; it is stuck", http.StatusServiceUnavailable)
	op.stop(t, 1)
	if log := op.log(); !strings.Contains(log, "stopped while passes were still running after 500ms") {
		t.Errorf("the log does not say what was cut off:\n%s", log)
	}
}

// Secrets are read live: the role of this operator lets it get them and nothing else, so
// a cache, which lists and watches, could not have answered.
func TestSecretsAreReadLive(t *testing.T) {
	in := install(t, "secrets", nil)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: in.namespace, Name: "orders"}, StringData: map[string]string{"word": "psst"}}
	if err := in.client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	op := startOperator(t, in, "--from-secret")
	op.awaitReady(t)
	seen := testenv.Wait(t, in.client, in.probe(t, "orders"), "the operator to greet", greeted)
	if seen.Status.Note != "psst, orders" {
		t.Errorf("note %q, want the Secret's word", seen.Status.Note)
	}
	op.stop(t, 0)
}

func (in installed) lease(t *testing.T) *coordinationv1.Lease {
	t.Helper()
	lease := &coordinationv1.Lease{}
	if err := in.client.Get(t.Context(), client.ObjectKey{Namespace: in.namespace, Name: in.name}, lease); err != nil {
		t.Fatal(err)
	}
	return lease
}

// awaitEvent waits for an event about the Probe of that name.
func (in installed) awaitEvent(t *testing.T, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), poll.Patience)
	defer cancel()
	w, err := in.client.Watch(ctx, &eventsv1.EventList{}, client.InNamespace(in.namespace))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if event, ok := e.Object.(*eventsv1.Event); ok && event.Regarding.Kind == "Probe" && event.Regarding.Name == name {
			return
		}
	}
	t.Errorf("no event about Probe %s", name)
}

func TestAddressInUse(t *testing.T) {
	in := install(t, "taken", nil)
	op := startOperator(t, in)
	op.awaitReady(t)
	for _, flag := range []string{"metrics-address", "health-address", "debug-address"} {
		got := runOperator(t, in, "--"+flag, op.address(t, flag))
		want := fmt.Sprintf("address %s is in use; choose another with --%s, or 0 for none", op.address(t, flag), flag)
		if diff := cmp.Diff([]string{want}, got.errors(t)); diff != "" || got.Code != 1 {
			t.Errorf("exit code %d, want 1; errors (-want +got):\n%s", got.Code, diff)
		}
	}
	op.stop(t, 0)
}

func TestUnusableCluster(t *testing.T) {
	in := install(t, "unusable", nil)
	elsewhere := rest.AnonymousClientConfig(in.cfg)
	elsewhere.Host = "https://127.0.0.1:1"
	tests := map[string]struct {
		why  string
		in   installed
		args []string
		want []string // in the one error
	}{
		"away": {
			why:  "the cluster was shut down",
			in:   installed{name: "probe-operator", kubeconfig: writeKubeconfig(t, elsewhere, "x", "default")},
			want: []string{"no API server answers at https://127.0.0.1:1; start it, or select another one with --kubeconfig", "refused"},
		},
		"credentials": {
			why:  "the token has expired",
			in:   installed{name: "probe-operator", kubeconfig: writeKubeconfig(t, in.cfg, "stale", "default")},
			want: []string{"rejects the credentials; renew them in the kubeconfig"},
		},
		"no kubeconfig": {
			why:  "a first try on a laptop",
			in:   installed{name: "probe-operator"},
			want: []string{"no cluster is configured; set --kubeconfig or KUBECONFIG, or run in a pod"},
		},
		"no such kubeconfig": {
			why:  "a typo",
			in:   in,
			args: []string{"--kubeconfig", "/no/such/file"},
			want: []string{"read the kubeconfig:", "/no/such/file"},
		},
		"no CRD": {
			why:  "the first step of an installation was left out",
			in:   installed{name: notInstalled, kubeconfig: in.kubeconfig},
			want: []string{"the cluster does not have Probe.elsewhere.trimtab.dev/v1; install it with: " + notInstalled + " manifests crds | kubectl apply --server-side -f -"},
		},
		"debug for everybody": {
			why:  "the flight recorder is not for the network",
			in:   in,
			args: []string{"--debug-address", ":8082"},
			want: []string{"--debug-address :8082 is not on loopback; use 127.0.0.1, and kubectl port-forward to reach it from elsewhere"},
		},
		"unwritable trace": {why: "a typo", in: in, args: []string{"--trace", "/no/such/folder/t"}, want: []string{"--trace: open /no/such/folder/t"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := runOperator(t, tt.in, tt.args...)
			if problems := got.errors(t); got.Code != 1 || len(problems) != 1 || !containsAll(problems[0], tt.want) {
				t.Errorf("%s: exit code %d, errors %q; want 1 and one error with %q", tt.why, got.Code, problems, tt.want)
			}
		})
	}
}

func containsAll(s string, parts []string) bool {
	return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(s, p) })
}

// errors are the messages of the log at level error; all of the log must be JSON.
func (r ran) errors(t *testing.T) []string {
	t.Helper()
	var found []string
	decoder := json.NewDecoder(strings.NewReader(r.ErrOut))
	for {
		var line struct{ Level, Msg string }
		err := decoder.Decode(&line)
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatalf("not a JSON log: %v\n%s", err, r.ErrOut)
		}
		if line.Level == "ERROR" {
			found = append(found, line.Msg)
		}
	}
}

// stop sends SIGTERM and waits for the exit code.
func (o *running) stop(t *testing.T, code int) {
	t.Helper()
	o.terminate(t)
	o.stopped(t, code)
}

func (o *running) terminate(t *testing.T) {
	t.Helper()
	if err := o.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// stopped waits until the process has ended, and checks its exit code.
func (o *running) stopped(t *testing.T, code int) {
	t.Helper()
	select {
	case <-o.ended:
	case <-time.After(poll.Patience):
		t.Fatalf("still running %s after SIGTERM; log:\n%s", poll.Patience, o.log())
	}
	if got := o.cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("exit code %d, want %d; log:\n%s", got, code, o.log())
	}
}
