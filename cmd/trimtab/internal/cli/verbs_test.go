package cli

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/testenv"
)

// desk is a namespace with objects of several kinds, and nobody who works on them.
type desk struct {
	t         *testing.T
	cfg       *rest.Config
	client    client.WithWatch
	namespace string
	file      string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, probe.AllCRDs)
	testenv.InstallFS(t, cfg, thing.CRDs)
	testenv.InstallFS(t, cfg, bundle.CRDs)
	return &desk{t, cfg, testenv.Client(t, cfg, thing.AddToScheme, bundle.AddToScheme, probe.AddToScheme), testenv.Namespace(t, cfg), testenv.Kubeconfig(t, cfg)}
}

// put creates the objects of manifests, NS in which is the namespace, with their status.
func (d *desk) put(manifests string) {
	d.t.Helper()
	for text := range strings.SplitSeq(d.in(manifests), "\n---\n") {
		u := &unstructured.Unstructured{}
		d.do(yaml.Unmarshal([]byte(text), &u.Object))
		u.SetNamespace(d.namespace)
		status, has := u.Object["status"]
		d.do(d.client.Create(d.t.Context(), u))
		if has {
			body, err := json.Marshal(map[string]any{"status": status})
			d.do(err)
			d.do(d.client.Status().Patch(d.t.Context(), u, client.RawPatch("application/merge-patch+json", body)))
		}
	}
}

func (d *desk) do(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) in(text string) string { return strings.ReplaceAll(text, "NS", d.namespace) }

// lead makes an operator that may write the status of a resource, and whose lease was renewed some time ago.
func (d *desk) lead(name, group, resource string, ago time.Duration) {
	d.t.Helper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{resource + "/status"}, Verbs: []string{"patch"}}},
	}
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: name},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new(name + "-1_u"), LeaseDurationSeconds: new(int32(3600)),
			RenewTime: &metav1.MicroTime{Time: time.Now().Add(-ago)}, AcquireTime: &metav1.MicroTime{Time: time.Now().Add(-ago)},
		},
	}
	for _, obj := range []client.Object{role, lease} {
		d.do(d.client.Create(d.t.Context(), obj))
	}
	ctx := d.t.Context()
	d.t.Cleanup(func() { // a test of another operator of the kind must not find it
		for _, obj := range []client.Object{role, lease} {
			_ = d.client.Delete(context.WithoutCancel(ctx), obj)
		}
	})
}

// asks is a table of commands.
type asks map[string]struct {
	why  string
	args []string
	file string
	code int
	want []string
}

func (d *desk) asks(table asks) {
	d.t.Helper()
	for name, tc := range table {
		d.t.Run(name, func(t *testing.T) {
			file := tc.file
			if file == "" {
				file = d.file
			}
			args := slices.Clone(tc.args)
			for i := range args {
				args[i] = d.in(args[i])
			}
			code, out := ask(t.Context(), append(args, "-n", d.namespace, "--kubeconfig", file)...)
			if code != tc.code {
				t.Errorf("exit code %d, want %d (%s)", code, tc.code, tc.why)
			}
			for _, want := range tc.want {
				if !strings.Contains(out, d.in(want)) {
					t.Errorf("%s: printed\n%s\nwhich lacks %q", tc.why, out, d.in(want))
				}
			}
		})
	}
}

// reader is somebody who may read what operators look after, and nothing else.
func (d *desk) reader() string {
	d.t.Helper()
	groups := []string{thing.GroupVersion.Group, bundle.GroupVersion.Group, "probe.trimtab.dev"}
	return testenv.Kubeconfig(d.t, testenv.User(d.t, d.cfg, rbacv1.PolicyRule{APIGroups: groups, Resources: []string{"things", "bundles", "probes"}, Verbs: []string{"get", "list"}}))
}

const verbObjects = `apiVersion: things.trimtab.dev/v1
kind: Thing
metadata: {name: new}
spec: {}
---
apiVersion: things.trimtab.dev/v1
kind: Thing
metadata: {name: ready, annotations: {trimtab.dev/deletion: delete, trimtab.dev/external: '{"id":"r1","inc":1}'}}
spec: {}
status: {observedGeneration: 1, state: Succeeded, message: fine, external: {id: r1}, conditions: [{type: Ready, status: "True", reason: Available, message: "", lastTransitionTime: "2026-01-02T03:04:05Z"}]}
---
apiVersion: things.trimtab.dev/v1
kind: Thing
metadata: {name: limited}
spec: {}
status: {observedGeneration: 1, conditions: [{type: Failed, status: "True", reason: NotOurs, message: 'x exists; whoever runs the operator can allow annotation trimtab.dev/adoption=always, which adopts it, with --adoption-limit NS=always', lastTransitionTime: "2026-01-02T03:04:05Z"}]}
---
apiVersion: things.trimtab.dev/v1
kind: Thing
metadata: {name: paused, annotations: {trimtab.dev/paused: "true"}}
spec: {}
---
apiVersion: things.trimtab.dev/v1
kind: Thing
metadata: {name: leaving, annotations: {trimtab.dev/external: '{"id":"l1","inc":1}'}, finalizers: [things.things.trimtab.dev/finalizer, example.org/theirs, foregroundDeletion]}
spec: {}
status: {observedGeneration: 1, message: "cannot delete it: connection refused"}
---
apiVersion: things.trimtab.dev/v1
kind: Thing
metadata: {name: stale}
spec: {}
status: {observedGeneration: 0, conditions: [{type: Failed, status: "True", reason: RecreateNotPermitted, message: 'no permission; set annotation trimtab.dev/access-permissions to "cud" to allow it', lastTransitionTime: "2026-01-02T03:04:05Z"}]}
---
apiVersion: things.trimtab.dev/v1
kind: Thing
metadata: {name: built}
spec: {}
status: {observedGeneration: 1, conditions: [{type: Failed, status: "True", reason: RecreateNotPermitted, message: 'no permission; this operator is built without that permission', lastTransitionTime: "2026-01-02T03:04:05Z"}]}
---
apiVersion: things.trimtab.dev/v1
kind: Thing
metadata: {name: moved}
spec: {}
status: {observedGeneration: 1, external: {id: m1}, conditions: [{type: Failed, status: "True", reason: EndpointChanged, message: 'made at east; set annotation trimtab.dev/endpoint to "west:1" to leave the resource there', lastTransitionTime: "2026-01-02T03:04:05Z"}]}
---
apiVersion: bundles.trimtab.dev/v1
kind: Bundle
metadata: {name: empty}
spec: {}
---
apiVersion: bundles.trimtab.dev/v1
kind: Bundle
metadata: {name: two, finalizers: [pages.example.org/finalizer]}
spec: {}
status:
  observedGeneration: 1
  message: 'set pages.example.org/allow-prune: "1" on the component to delete them; set pages.example.org/left-behind: c7 to leave them there for good; set pages.example.org/accept-data-loss: "true" to allow that'
  inventory: [{version: v1, kind: ConfigMap, namespace: NS, name: stays}, {version: v1, kind: ConfigMap, namespace: NS, name: goes, kept: true}]
  conditions: [{type: PruneBlocked, status: "True", reason: TooMany, message: "", lastTransitionTime: "2026-01-02T03:04:05Z"}]
---
apiVersion: bundles.trimtab.dev/v1
kind: Bundle
metadata: {name: away, finalizers: [pages.example.org/finalizer]}
spec: {}
status:
  observedGeneration: 1
  cluster: there
  inventory: [{version: v1, kind: ConfigMap, namespace: NS, name: far}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: plain, finalizers: [kubernetes.io/pvc-protection]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: stays, annotations: {pages.example.org/owner-id: x}}`

// TestVerbs: each verb where there is something to do, where there is not, without permission, for what is being deleted, and for
// kinds that are not of trimtab's operators.
func TestVerbs(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(verbObjects)
	leaving := &thing.Thing{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "leaving"}}
	d.do(d.client.Get(t.Context(), client.ObjectKeyFromObject(leaving), leaving))
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "held", Finalizers: []string{"example.org/theirs"}}}
	held.OwnerReferences = []metav1.OwnerReference{{APIVersion: thing.GroupVersion.String(), Kind: "Thing", Name: leaving.Name, UID: leaving.UID, BlockOwnerDeletion: new(true)}}
	d.do(d.client.Create(t.Context(), held)) // for which the garbage collector waits, and so leaves its finalizer
	d.do(d.client.Delete(t.Context(), leaving))
	reader := d.reader()
	d.adoptAndOrphan(reader)
	d.approve(reader)
	d.unstick(reader)
	d.histories(reader)
}

func (d *desk) adoptAndOrphan(reader string) {
	d.t.Helper()
	d.asks(asks{
		"adopt, it has one":          {"nothing to do", []string{"adopt", "thing/ready"}, "", 0, []string{`nothing to do: it has the external resource "r1"`}},
		"adopt, not allowed here":    {"the operator's limit", []string{"adopt", "thing/limited"}, "", 1, []string{"Thing/limited may not adopt it", "--adoption-limit NS=always"}},
		"adopt, paused":              {"it says when", []string{"adopt", "thing/paused", "--dry-run"}, "", 0, []string{"nothing is adopted before it is resumed"}},
		"adopt, being deleted":       {"too late", []string{"adopt", "thing/leaving"}, "", 1, []string{"Thing/leaving is being deleted, so it adopts nothing"}},
		"adopt, another's kind":      {"no trimtab", []string{"adopt", "configmap/plain"}, "", 1, []string{"objects of kind ConfigMap stand for nothing that could be adopted"}},
		"adopt, no external":         {"a custom resource without", []string{"adopt", "probe/x"}, "", 1, []string{"Probe NS/x does not exist"}},
		"adopt, no UID":              {"bad input", []string{"adopt", "thing/new", "--from", "from:x"}, "", 1, []string{`--from: "from:x" is no UID`}},
		"adopt, a component":         {"the manifest says it", []string{"adopt", "bundle/two"}, "", 1, []string{"adoption-policy in that object's manifest"}},
		"adopt, restored component":  {"by its former UID", []string{"adopt", "bundle/two", "--from", "u0", "--dry-run"}, "", 0, []string{"would set annotation pages.example.org/restored-from: u0", "remove the annotation when the component is ready"}},
		"adopt, nameless component":  {"no operator known", []string{"adopt", "bundle/empty", "--from", "u0"}, "", 1, []string{"does not show the name of its operator", "set the annotation <operator>/restored-from: u0 yourself"}},
		"adopt, may not":             {"a preview needs only reading", []string{"adopt", "thing/new", "--dry-run"}, reader, 0, []string{"would set annotation trimtab.dev/adoption: always (dry run)", "Refused  Thing/new is not changed: you need the permission to patch it", "Not seen: CustomResourceDefinition things.things.trimtab.dev: forbidden"}},
		"adopt, really may not":      {"an error", []string{"adopt", "thing/new"}, reader, 1, []string{"trimtab: Thing/new is not changed: you need the permission to patch it"}},
		"orphan, nothing known":      {"one that comes later is kept", []string{"orphan", "thing/new", "--dry-run"}, "", 0, []string{"no external resource of it is known yet; one that it gets is kept"}},
		"orphan, another value":      {"undo restores it", []string{"orphan", "thing/ready", "--dry-run"}, "", 0, []string{`Kept    external resource "r1"`, "Undo    kubectl annotate thing ready trimtab.dev/deletion=delete --overwrite -n NS --kubeconfig="}},
		"orphan, being deleted":      {"perhaps too late", []string{"orphan", "thing/leaving", "--dry-run"}, "", 0, []string{"it is being deleted already", `external resource "l1"`}},
		"orphan, another's kind":     {"no trimtab", []string{"orphan", "configmap/plain"}, "", 1, []string{"kubectl delete configmap plain --cascade=orphan -n NS --kubeconfig="}},
		"orphan, no dependents":      {"nothing to do", []string{"orphan", "bundle/empty"}, "", 0, []string{"Bundle/empty: nothing to do: it has no dependents"}},
		"orphan, may not":            {"a preview needs only reading", []string{"orphan", "bundle/two", "--dry-run"}, reader, 0, []string{"annotation pages.example.org/abandon: ", "/ConfigMap/NS/stays", "Refused", "Not seen: "}},
		"orphan, JSON":               {"for programs", []string{"orphan", "bundle/two", "--dry-run", "-o", "json"}, "", 0, []string{`"annotation": "pages.example.org/abandon"`, `"ConfigMap/goes"`, `"done": false`}},
		"orphan, does not exist":     {"an error", []string{"orphan", "thing/no"}, "", 1, []string{"Thing NS/no does not exist"}},
		"adopt, JSON":                {"for programs", []string{"adopt", "thing/ready", "-o", "json"}, "", 0, []string{`"effects": [`, `"done": false`}},
		"adopt, an output like yaml": {"bad input", []string{"adopt", "thing/ready", "-o", "yaml"}, "", 1, []string{`--output: "yaml" is not known`}},
	})
}

func (d *desk) approve(reader string) {
	d.t.Helper()
	d.asks(asks{
		"approve, nothing held":     {"nothing to do", []string{"approve", "thing/ready"}, "", 0, []string{"Thing/ready: nothing to do: nothing is held"}},
		"approve, old status":       {"what would be approved is not known", []string{"approve", "thing/stale"}, "", 1, []string{"cannot be approved now", "the status is of generation 0 and the spec of generation 1"}},
		"approve, built without":    {"the object is not the place", []string{"approve", "thing/built"}, "", 1, []string{"this operator is built without that permission; it cannot be approved on the object"}},
		"approve, endpoint":         {"another mechanism", []string{"approve", "thing/moved", "--dry-run"}, "", 0, []string{"would set annotation trimtab.dev/endpoint: west:1", `external resource "m1" stays at the former endpoint`}},
		"approve, several":          {"one is to be chosen", []string{"approve", "bundle/two"}, "", 1, []string{"several steps are held; choose one with --step prune or --step left-behind"}},
		"approve, one of several":   {"exactly that", []string{"approve", "bundle/two", "--step", "prune", "--dry-run"}, "", 0, []string{"would set annotation pages.example.org/allow-prune: 1", "Not kept  ConfigMap/goes\n", "Undo      it cannot be undone once the operator has acted; before that: kubectl annotate bundle two "}},
		"approve, in the manifest":  {"not on the component", []string{"approve", "bundle/two", "--step", "data-loss"}, "", 1, []string{"it is approved in the manifest of the dependent"}},
		"approve, no such step":     {"bad input", []string{"approve", "bundle/two", "--step", "recreate"}, "", 1, []string{`no step "recreate" is held; held: prune: `}},
		"approve, another's kind":   {"no trimtab", []string{"approve", "configmap/plain"}, "", 1, []string{"nothing is ever held for objects of kind ConfigMap"}},
		"approve, being deleted":    {"nothing is held", []string{"approve", "thing/leaving"}, "", 0, []string{"nothing is held"}},
		"approve, may not":          {"an error", []string{"approve", "thing/moved"}, reader, 1, []string{"Thing/moved is not changed: you need the permission to patch it"}},
		"approve, may only look":    {"a preview", []string{"approve", "thing/moved", "--dry-run"}, reader, 0, []string{"would set annotation trimtab.dev/endpoint", "Refused"}},
		"approve, JSON, if nothing": {"for programs", []string{"approve", "thing/ready", "-o", "json"}, "", 0, []string{`"nothing is held"`}},
	})
}

func (d *desk) unstick(reader string) {
	t := d.t
	t.Helper()
	d.lead("op-"+d.namespace, thing.GroupVersion.Group, "things", 2*time.Hour)
	own := "things.things.trimtab.dev/finalizer"
	d.asks(asks{
		"unstick, no finalizers":   {"nothing to do", []string{"unstick", "thing/new"}, "", 0, []string{"Thing/new has no finalizers: nothing keeps it when it is deleted"}},
		"unstick, not deleted":     {"nothing is stuck", []string{"unstick", "configmap/plain"}, "", 0, []string{"ConfigMap/plain is not being deleted. When it is, it waits for:", "Protects    data that a Pod still uses", "Removed by  Kubernetes"}},
		"unstick, remove too soon": {"a live object", []string{"unstick", "configmap/plain", "--remove", "kubernetes.io/pvc-protection"}, "", 1, []string{"ConfigMap/plain is not being deleted, so nothing waits for its finalizers; delete it first"}},
		"unstick, explained": {"each one", []string{"unstick", "thing/leaving"}, "", 0, []string{
			"Thing/leaving is being deleted for ", "status: cannot delete it: connection refused", own,
			"Protects    the external resource, which is deleted first", "Removed by  operator NS/op-NS", "does not run: its lease was renewed 2h0m", `Without it  external resource "l1" stays`,
			"example.org/theirs", "not known: it is not the finalizer of an operator of Thing", "foregroundDeletion", "Without it  what it owns is deleted after it", "--remove FINALIZER",
		}},
		"unstick, component":           {"its dependents", []string{"unstick", "bundle/two"}, "", 0, []string{"pages.example.org/finalizer", "Protects    the dependents, which are deleted first", "Without it  ConfigMap/stays"}},
		"unstick, other cluster":       {"nobody looks for them there", []string{"unstick", "bundle/away"}, "", 0, []string{"Without it  ConfigMap/far in another cluster"}},
		"unstick, no such finalizer":   {"bad input", []string{"unstick", "thing/leaving", "--remove", "x/y"}, "", 1, []string{`Thing/leaving has no finalizer "x/y"; it has: ` + own + ", example.org/theirs, foregroundDeletion"}},
		"unstick, dry run":             {"nothing happens", []string{"unstick", "thing/leaving", "--remove", own, "--dry-run"}, "", 0, []string{"finalizer " + own + " would be removed (dry run)", `external resource "l1" stays`}},
		"unstick, dry run of nothing":  {"bad input", []string{"unstick", "thing/leaving", "--dry-run"}, "", 1, []string{"--dry-run is for --remove"}},
		"unstick, only reading":        {"it says what is not seen", []string{"unstick", "thing/leaving"}, reader, 0, []string{"Alive       not known: no lease of it can be seen", "Not seen: ", "leases of operators: forbidden"}},
		"unstick, may not":             {"an error", []string{"unstick", "thing/leaving", "--remove", own}, reader, 1, []string{"Thing/leaving is not changed: you need the permission to patch it"}},
		"unstick, may not, dry run":    {"a preview", []string{"unstick", "thing/leaving", "--remove", own, "--dry-run"}, reader, 0, []string{"Refused"}},
		"unstick, does not exist":      {"an error", []string{"unstick", "thing/no"}, "", 1, []string{"Thing NS/no does not exist"}},
		"unstick, JSON":                {"for programs", []string{"unstick", "thing/leaving", "-o", "json"}, "", 0, []string{`"name": "example.org/theirs"`, `"leaks": [`}},
		"unstick, a namespace, a live": {"no finalizer of metadata", []string{"unstick", "namespace", "NS"}, "", 0, []string{"NS is not being deleted", "the objects in the namespace"}},
	})
	leaving := &thing.Thing{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "leaving"}}
	for _, name := range []string{own, "example.org/theirs", "foregroundDeletion"} {
		code, out := ask(t.Context(), "unstick", "thing/leaving", "--remove", name, "-n", d.namespace, "--kubeconfig", d.file)
		if code != 0 || !strings.Contains(out, "finalizer "+name+" is removed; this cannot be undone") {
			t.Errorf("remove %s: exit code %d: %s", name, code, out)
		}
	}
	if err := d.client.Get(t.Context(), client.ObjectKeyFromObject(leaving), leaving); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
}

// TestMeanwhile: what was changed since it was looked at is not changed, and neither is another object of the same name.
func TestMeanwhile(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(`apiVersion: things.trimtab.dev/v1
kind: Thing
metadata: {name: a, finalizers: [example.org/theirs]}
spec: {}`)
	a := &thing.Thing{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "a"}}
	d.do(d.client.Delete(t.Context(), a))
	var k kube
	cmd := &cobra.Command{}
	cmd.SetOut(io.Discard)
	cmd.SetContext(t.Context())
	k.bind(cmd, false)
	*k.flags.KubeConfig, *k.flags.Namespace = d.file, d.namespace
	target, r, err := k.asked([]string{"thing/a"})
	d.do(err)
	stuck, err := target.cluster().Stuck(t.Context(), r)
	d.do(err)
	change, err := target.cluster().Orphan(t.Context(), r)
	d.do(err)
	d.do(d.client.Get(t.Context(), client.ObjectKeyFromObject(a), a))
	a.Annotations = map[string]string{"example.org/x": "y"}
	d.do(d.client.Update(t.Context(), a))
	removed := removal{Stuck: stuck}
	for what, err := range map[string]error{"finalizer": removed.remove(cmd, target, "example.org/theirs", false), "annotation": k.change(cmd, target, change, false)} {
		if err == nil || !strings.Contains(err.Error(), "Thing/a is not changed: it was changed meanwhile; look at it again") {
			t.Errorf("%s: %v", what, err)
		}
	}
	d.do(d.client.Get(t.Context(), client.ObjectKeyFromObject(a), a))
	if len(a.Finalizers) != 1 || a.Annotations[api.AnnotationDeletion] != "" {
		t.Errorf("it was changed: %v, %v", a.Finalizers, a.Annotations)
	}
}

func (d *desk) histories(reader string) {
	t := d.t
	t.Helper()
	d.put(`apiVersion: probe.trimtab.dev/v1
kind: Probe
metadata: {name: a}
spec: {size: 3}
status: {observedGeneration: 1, state: Failed, conditions: [{type: Ready, status: "False", reason: QuotaExceeded, message: "10 of 10\nin use", lastTransitionTime: "2026-01-02T03:04:05Z"}]}`)
	p := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "a"}}
	d.do(d.client.Get(t.Context(), client.ObjectKeyFromObject(p), p))
	for name, event := range map[string]*corev1.Event{
		"retry": {InvolvedObject: corev1.ObjectReference{UID: p.UID, Name: "a"}, Type: "Warning", Reason: "CreateFailed", Message: "quota 10/10", Count: 7, FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(), Source: corev1.EventSource{Component: "shop-operator"}},
		"other": {InvolvedObject: corev1.ObjectReference{UID: "another", Name: "a"}, Type: "Normal", Reason: "Other", Message: "of an earlier one", LastTimestamp: metav1.Now()},
		"gone":  {InvolvedObject: corev1.ObjectReference{UID: "gone", Name: "gone"}, Type: "Normal", Reason: "Deleted", Message: "it was deleted", LastTimestamp: metav1.Now()},
	} {
		event.ObjectMeta = metav1.ObjectMeta{Namespace: d.namespace, Name: name}
		event.InvolvedObject.Namespace, event.InvolvedObject.Kind, event.InvolvedObject.APIVersion = d.namespace, "Probe", "probe.trimtab.dev/v1"
		d.do(d.client.Create(t.Context(), event))
	}
	d.asks(asks{
		"history":                  {"one time axis", []string{"history", "probe/a"}, "", 0, []string{"2026-01-02 ", "Ready became False (now QuotaExceeded): 10 of 10 in use", "it was created", "last write of a writer that owns spec.size; the present generation, 1, is not newer", "status written", "CreateFailed: quota 10/10 (7 times since ", "by shop-operator", "Not kept: events are deleted after an hour", "the object keeps no history in its status"}},
		"history, since":           {"only the newest", []string{"history", "probe/a", "--since", "1h"}, "", 0, []string{"CreateFailed"}},
		"history, bad since":       {"bad input", []string{"history", "probe/a", "--since", "-1h"}, "", 1, []string{"--since: -1h0m0s is in the future"}},
		"history, gone":            {"by its events alone", []string{"history", "probe/gone"}, "", 0, []string{"event  Deleted: it was deleted"}},
		"history, never":           {"an error", []string{"history", "probe/never"}, "", 1, []string{"Probe NS/never does not exist, and there are no events about it"}},
		"history, only reading":    {"without events", []string{"history", "probe/a"}, reader, 0, []string{"it was created", "Not seen: ", "events in namespace NS: forbidden"}},
		"history, another kind":    {"any object", []string{"history", "configmap/plain"}, "", 0, []string{"it was created", "metadata.finalizers"}},
		"adopt, a custom resource": {"without an external one", []string{"adopt", "probe/a"}, "", 1, []string{"objects of kind Probe stand for nothing that could be adopted"}},
		"history, its operator":    {"since when it leads", []string{"history", "thing/new"}, "", 0, []string{"op-NS-1_u became the leader of operator NS/op-NS"}},
	})
	_, out := ask(t.Context(), "history", "probe/a", "-o", "json", "-n", d.namespace, "--kubeconfig", d.file)
	var h model.History
	if err := json.Unmarshal([]byte(out), &h); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	for i, m := range h.Moments {
		if strings.Contains(m.Text, "of an earlier one") || i > 0 && m.At.Time.Before(h.Moments[i-1].At.Time) {
			t.Errorf("moment %d: %+v", i, m)
		}
	}
	_, out = ask(t.Context(), "history", "probe/a", "--since", "1h", "-n", d.namespace, "--kubeconfig", d.file)
	if strings.Contains(out, "QuotaExceeded") {
		t.Errorf("--since 1h printed\n%s\nwhich has what happened before", out)
	}
}
