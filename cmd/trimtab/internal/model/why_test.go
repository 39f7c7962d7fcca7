package model_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/testenv"
)

func TestMain(m *testing.M) {
	logf.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// world is a namespace with broken objects.
type world struct {
	t         *testing.T
	cfg       *rest.Config
	client    client.WithWatch
	namespace string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, probe.AllCRDs)
	testenv.InstallFS(t, cfg, thing.CRDs)
	testenv.InstallFS(t, cfg, bundle.CRDs)
	return &world{t, cfg, testenv.Client(t, cfg, clientgoscheme.AddToScheme), testenv.Namespace(t, cfg)}
}

// cluster is what whoever has a configuration sees.
func (w *world) cluster(cfg *rest.Config) *model.Cluster {
	w.t.Helper()
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(cfg, httpClient)
	if err != nil {
		w.t.Fatal(err)
	}
	reader, err := client.New(cfg, client.Options{HTTPClient: httpClient, Mapper: mapper})
	if err != nil {
		w.t.Fatal(err)
	}
	server, err := discovery.NewDiscoveryClientForConfigAndClient(cfg, httpClient)
	if err != nil {
		w.t.Fatal(err)
	}
	return model.New(reader, mapper, server)
}

// put creates the objects of manifests, NS in which is the namespace, with the status that they have. An annotation owner
// names the owner, which comes first, as Kind/name.
func (w *world) put(manifests string) {
	w.t.Helper()
	uids := map[string]*unstructured.Unstructured{}
	for text := range strings.SplitSeq(strings.ReplaceAll(manifests, "NS", w.namespace), "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			w.t.Fatalf("%v in\n%s", err, text)
		}
		if u.GetNamespace() == "" && u.GetKind() != "ClusterRole" {
			u.SetNamespace(w.namespace)
		}
		if owner := uids[u.GetAnnotations()["owner"]]; owner != nil {
			yes := true
			refs := []any{map[string]any{"apiVersion": owner.GetAPIVersion(), "kind": owner.GetKind(), "name": owner.GetName(), "uid": string(owner.GetUID()), "controller": yes, "blockOwnerDeletion": yes}}
			if err := unstructured.SetNestedSlice(u.Object, refs, "metadata", "ownerReferences"); err != nil {
				w.t.Fatal(err)
			}
		}
		status, has := u.Object["status"]
		if err := w.client.Create(w.t.Context(), u); err != nil {
			w.t.Fatalf("%v in\n%s", err, text)
		}
		w.t.Cleanup(func() { w.remove(u) })
		if has {
			body, err := json.Marshal(map[string]any{"status": status})
			if err == nil {
				err = w.client.Status().Patch(w.t.Context(), u, client.RawPatch("application/merge-patch+json", body)) // others write, too
			}
			if err != nil {
				w.t.Fatalf("%v in\n%s", err, text)
			}
		}
		uids[u.GetKind()+"/"+u.GetName()] = u
	}
}

func (w *world) remove(u *unstructured.Unstructured) {
	ctx := context.WithoutCancel(w.t.Context())
	if len(u.GetFinalizers()) > 0 {
		_ = w.client.Patch(ctx, u, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
	}
	if err := w.client.Delete(ctx, u); err != nil && !apierrors.IsNotFound(err) {
		w.t.Error(err)
	}
}

// situation is something that is broken, and what is to be said of it.
type situation struct {
	name, manifests string
	// of is the object that is asked about, as APIVersion Kind name.
	of string
	// before and then change what there is, before and after.
	before, then func(w *world)
	code         model.Code
	// chain are the objects that lead to the cause.
	chain  []string
	text   string
	remedy string
}

const probed = `
apiVersion: probe.trimtab.dev/v1
kind: Probe
metadata: {name: a%s}
%s
status: {observedGeneration: 1, state: %s, message: %q, conditions: [{type: Ready, status: "False", reason: %s, message: %q, observedGeneration: 1, lastTransitionTime: "2026-01-02T03:04:05Z"}%s]}`

// waits is a Probe that is not ready for a reason.
func waits(reason, message string, conditions ...string) string {
	more := ""
	for _, c := range conditions {
		more += fmt.Sprintf(`, {type: %s, status: "True", reason: X, message: "", lastTransitionTime: "2026-01-02T03:04:05Z"}`, c)
	}
	return fmt.Sprintf(probed, "", "spec: {size: 1}", reason, message, reason, message, more)
}

const pod = `
---
apiVersion: v1
kind: Pod
metadata: {name: p, annotations: {owner: Probe/a}}
spec:
  schedulerName: nobody
  containers: [{name: c, image: nowhere/app}]
  %s
status: {phase: %s, %s}`

func ofPod(spec, phase, status string) string {
	return waits("Processing", "Pod p is not ready") + fmt.Sprintf(pod, spec, phase, status)
}

func situations() []situation {
	probeA := "probe.trimtab.dev/v1 Probe a"
	return []situation{
		{
			name: "nobody has observed it", of: probeA, code: model.NotObserved, chain: []string{"Probe/a"}, text: "no operator has observed it",
			manifests: "apiVersion: probe.trimtab.dev/v1\nkind: Probe\nmetadata: {name: a}\nspec: {size: 1}",
		},
		{
			name: "a newer spec was not observed", of: probeA, code: model.NotObserved, chain: []string{"Probe/a"}, text: "generation 2 was not observed yet",
			manifests: waits("Processing", "at work"),
			then: func(w *world) {
				w.patch("Probe", `{"spec":{"size":2}}`)
			},
		},
		{
			name: "paused", of: probeA, code: model.Paused, chain: []string{"Probe/a"}, text: "is paused", remedy: "kubectl annotate probe a trimtab.dev/paused- -n NS",
			manifests: waits("Paused", "paused by annotation"),
			then:      func(w *world) { w.patch("Probe", `{"metadata":{"annotations":{"trimtab.dev/paused":"true"}}}`) },
		},
		{
			name: "a finalizer of somebody else", of: probeA, code: model.Finalizer, chain: []string{"Probe/a"}, text: "waits for finalizer example.org/keep",
			manifests: strings.Replace(waits("Processing", "at work"), "{name: a}", "{name: a, finalizers: [example.org/keep]}", 1),
			then: func(w *world) {
				u := w.object("Probe")
				if err := w.client.Delete(w.t.Context(), u); err != nil {
					w.t.Fatal(err)
				}
			},
		},
		{
			name: "what it needs does not exist", of: probeA, code: model.Absent, chain: []string{"Probe/a", "Secret/creds"}, text: "Secret NS/creds does not exist",
			manifests: waits("DependenciesNotReady", "waiting for Secret NS/creds: it does not exist"),
		},
		{
			name: "what it needs needs something else", of: probeA, code: model.Quota, chain: []string{"Probe/a", "Thing/b"}, text: "quota 10/10",
			manifests: waits("DependenciesNotReady", "waiting for Thing NS/b: it is not ready") + `
---
apiVersion: things.trimtab.dev/v1
kind: Thing
metadata: {name: b}
spec: {}
status: {observedGeneration: 1, state: Creating, message: "cannot create thing b: quota 10/10 in eu-west; retrying", conditions: [{type: Ready, status: "False", reason: Throttled, message: "", lastTransitionTime: "2026-01-02T03:04:05Z"}]}`,
		},
		{
			name: "the other system refuses it for good", of: probeA, code: model.Told, chain: []string{"Probe/a"}, text: "spec.size is more than 10",
			manifests: waits("TooLarge", "spec.size is more than 10", "Stalled"),
		},
		{
			name: "the operator lacks a permission", of: probeA, code: model.Denied, chain: []string{"Probe/a"}, text: "cannot get resource",
			manifests: waits("Error", `secrets "x" is forbidden: User "op" cannot get resource "secrets"`),
		},
		{
			name: "a webhook refuses a dependent", of: probeA, code: model.Refused, chain: []string{"Probe/a"}, text: "denied the request",
			manifests: waits("Error", `admission webhook "policy.example.org" denied the request: no latest`),
		},
		{
			name: "it takes its time", of: probeA, code: model.Waiting, chain: []string{"Probe/a"}, text: "creating the database",
			manifests: waits("Creating", "creating the database", "Reconciling"),
		},
		{
			name: "an image that does not exist", of: probeA, code: model.Image, chain: []string{"Probe/a", "Pod/p"}, text: "image nowhere/app cannot be pulled: not found",
			manifests: ofPod("", "Pending", `containerStatuses: [{name: c, image: nowhere/app, imageID: "", ready: false, restartCount: 0, state: {waiting: {reason: ImagePullBackOff, message: "not found"}}}]`),
		},
		{
			name: "a program that ends", of: probeA, code: model.Crash, chain: []string{"Probe/a", "Pod/p"}, text: "container c has ended 7 times, last with code 3", remedy: "kubectl logs p -c c --previous -n NS",
			manifests: ofPod("", "Running", `containerStatuses: [{name: c, image: nowhere/app, imageID: "", ready: false, restartCount: 7, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 3, reason: Error, message: "no config"}}}]`),
		},
		{
			name: "a Secret of a container", of: probeA, code: model.Absent, chain: []string{"Probe/a", "Pod/p", "Secret/env"}, text: "Secret NS/env does not exist",
			manifests: ofPod("", "Pending", `containerStatuses: [{name: c, image: nowhere/app, imageID: "", ready: false, restartCount: 0, state: {waiting: {reason: CreateContainerConfigError, message: 'secret "env" not found'}}}]`),
		},
		{
			name: "a readiness probe", of: probeA, code: model.Unready, chain: []string{"Probe/a", "Pod/p"}, text: "container c runs and is not ready",
			manifests: ofPod("", "Running", `conditions: [{type: Ready, status: "False", reason: ContainersNotReady}], containerStatuses: [{name: c, image: nowhere/app, imageID: "", ready: false, restartCount: 0, state: {running: {}}}]`),
		},
		{
			name: "no node", of: probeA, code: model.Unschedulable, chain: []string{"Probe/a", "Pod/p"}, text: "0/3 nodes are available: insufficient cpu",
			manifests: ofPod("", "Pending", `conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/3 nodes are available: insufficient cpu"}]`),
		},
		{
			name: "a storage class that does not exist", of: probeA, code: model.Absent, chain: []string{"Probe/a", "Pod/p", "PersistentVolumeClaim/data", "StorageClass/fast"}, text: "StorageClass fast does not exist",
			manifests: ofPod("volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]", "Pending", `conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "unbound claims"}]`) + `
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {storageClassName: fast, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}`,
		},
		{
			name: "a Job that has failed", of: "batch/v1 Job j", code: model.Failed, chain: []string{"Job/j"}, text: "BackoffLimit", remedy: "kubectl logs job/j -n NS",
			manifests: `apiVersion: batch/v1
kind: Job
metadata: {name: j}
spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}
status: {startTime: "2026-01-02T03:04:05Z", conditions: [{type: FailureTarget, status: "True", reason: BackoffLimitExceeded, message: "Job has reached the specified BackoffLimit"}]}`,
		},
		{
			name: "a quota of the namespace", of: "bundles.trimtab.dev/v1 Bundle b", code: model.Quota, chain: []string{"Bundle/b", "Deployment/web"}, text: "exceeded quota", remedy: "kubectl describe resourcequota -n NS",
			manifests: `apiVersion: bundles.trimtab.dev/v1
kind: Bundle
metadata: {name: b}
spec: {}
status:
  observedGeneration: 1
  state: Processing
  message: Deployment web is not ready
  inventory: [{group: apps, version: v1, kind: Deployment, namespace: NS, name: web}, {version: v1, kind: ConfigMap, namespace: NS, name: fine}]
  conditions: [{type: Ready, status: Unknown, reason: Processing, message: "", lastTransitionTime: "2026-01-02T03:04:05Z"}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: fine}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: none}
spec: {hard: {pods: "0"}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {schedulerName: nobody, containers: [{name: c, image: x}]}}}`,
			then: func(w *world) {
				d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "web"}}
				testenv.Wait(w.t, w.client, d, "the quota to be met", func(d *appsv1.Deployment) bool {
					return slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool { return c.Type == appsv1.DeploymentReplicaFailure })
				})
			},
		},
		{
			name: "nobody leads", of: "things.trimtab.dev/v1 Thing t", code: model.OperatorAway, chain: []string{"Thing/t"}, text: "operator NS/op-NS does not run", remedy: "kubectl get deployment op-NS -n NS",
			manifests: `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: op-NS}
rules: [{apiGroups: [things.trimtab.dev], resources: [things/status], verbs: [patch]}]
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: op-NS}
spec: {holderIdentity: x, leaseDurationSeconds: 15, renewTime: "2026-01-02T03:04:05.000000Z"}
---
apiVersion: things.trimtab.dev/v1
kind: Thing
metadata: {name: t}
spec: {}
status: {observedGeneration: 1, state: Creating, message: creating thing t, conditions: [{type: Ready, status: "False", reason: Creating, message: "", lastTransitionTime: "2026-01-02T03:04:05Z"}]}`,
		},
		{
			name: "a webhook's words from a controller of Kubernetes", of: "apps/v1 ReplicaSet r", code: model.Refused, chain: []string{"ReplicaSet/r"}, text: "violates PodSecurity",
			manifests: replicaSet(""), then: refused,
			before: func(w *world) {
				ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
				body := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`)
				if err := w.client.Patch(w.t.Context(), ns, client.RawPatch("application/merge-patch+json", body)); err != nil {
					w.t.Fatal(err)
				}
			},
		},
		{
			name: "a ServiceAccount that does not exist", of: "apps/v1 ReplicaSet r", code: model.Absent, chain: []string{"ReplicaSet/r", "ServiceAccount/robot"}, text: "ServiceAccount NS/robot does not exist",
			manifests: replicaSet("serviceAccountName: robot, "), then: refused,
		},
		{
			name: "too little memory", of: probeA, code: model.Crash, chain: []string{"Probe/a", "Pod/p"}, text: "last with code 137 (OOMKilled)", remedy: "raise its memory limit",
			manifests: ofPod("", "Running", `containerStatuses: [{name: c, image: x, imageID: "", ready: false, restartCount: 2, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}]`),
		},
		{
			name: "the first container of two that prepares", of: probeA, code: model.Crash, chain: []string{"Probe/a", "Pod/p"}, text: "container prepare has ended, last with code 2",
			manifests: ofPod("", "Pending", `initContainerStatuses: [{name: prepare, image: x, imageID: "", ready: false, restartCount: 0, state: {terminated: {exitCode: 2, reason: Error}}}], containerStatuses: [{name: c, image: x, imageID: "", ready: false, restartCount: 0, state: {waiting: {reason: PodInitializing}}}]`),
		},
		{
			name: "no default storage class", of: "v1 PersistentVolumeClaim data", code: model.Claim, chain: []string{"PersistentVolumeClaim/data"}, text: "names no storage class", remedy: "mark one as the default",
			manifests: "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {storageClassName: \"\", accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}",
		},
		{
			name: "a wrong password", of: probeA, code: model.Denied, chain: []string{"Probe/a"}, text: "authentication failed",
			manifests: waits("Unconnectable", "cannot connect: password authentication failed for user app"),
		},
		{
			name: "two levels down", of: probeA, code: model.Absent, chain: []string{"Probe/a", "Thing/b", "ConfigMap/settings"}, text: "ConfigMap NS/settings does not exist",
			manifests: waits("DependenciesNotReady", "waiting for Thing NS/b: it is not ready") + thingThat("b", "DependenciesNotReady", "waiting for ConfigMap NS/settings: it does not exist"),
		},
		{
			name: "two that wait for each other", of: probeA, code: model.Told, chain: []string{"Probe/a", "Thing/b"}, text: "waiting for Probe NS/a",
			manifests: waits("DependenciesNotReady", "waiting for Thing NS/b: it is not ready") + thingThat("b", "DependenciesNotReady", "waiting for Probe NS/a: it is not ready"),
		},
		{
			name: "what an approval is needed for", of: probeA, code: model.Told, chain: []string{"Probe/a"}, text: "set probes.example.org/allow-prune: 3",
			manifests: waits("PruneBlocked", "4 of 5 dependents would be deleted; set probes.example.org/allow-prune: 3"),
		},
		{
			name: "an object that is deleted after what it owns", of: probeA, code: model.Finalizer, chain: []string{"Probe/a", "ConfigMap/kept"}, text: "waits for finalizer example.org/keep",
			manifests: waits("Processing", "at work") + "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept, annotations: {owner: Probe/a}, finalizers: [example.org/keep]}",
			then: func(w *world) {
				if err := w.client.Delete(w.t.Context(), w.object("Probe"), client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
					w.t.Fatal(err)
				}
				kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "kept"}}
				testenv.Wait(w.t, w.client, kept, "its deletion", func(m *corev1.ConfigMap) bool { return !m.DeletionTimestamp.IsZero() })
			},
		},
		{
			name: "the lease was released", of: "things.trimtab.dev/v1 Gadget g", code: model.OperatorAway, chain: []string{"Gadget/g"}, text: "operator NS/gop-NS does not run",
			manifests: `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: gop-NS}
rules: [{apiGroups: [things.trimtab.dev], resources: [gadgets/status], verbs: [patch]}]
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: gop-NS}
spec: {leaseDurationSeconds: 1, renewTime: "2026-01-02T03:04:05.000000Z"}
---
apiVersion: things.trimtab.dev/v1
kind: Gadget
metadata: {name: g}
spec: {}
status: {observedGeneration: 1, state: Creating, message: creating gadget g, conditions: [{type: Ready, status: "False", reason: Creating, message: "", lastTransitionTime: "2026-01-02T03:04:05Z"}]}`,
		},
	}
}

// replicaSet is one whose Pods get a specification.
func replicaSet(spec string) string {
	return `apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: r}
spec: {replicas: 1, selector: {matchLabels: {app: r}}, template: {metadata: {labels: {app: r}}, spec: {schedulerName: nobody, ` + spec + `containers: [{name: c, image: x}]}}}`
}

// refused waits until no Pod of the ReplicaSet could be created.
func refused(w *world) {
	r := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "r"}}
	testenv.Wait(w.t, w.client, r, "the refusal", func(r *appsv1.ReplicaSet) bool {
		return slices.ContainsFunc(r.Status.Conditions, func(c appsv1.ReplicaSetCondition) bool { return c.Type == appsv1.ReplicaSetReplicaFailure })
	})
}

// thingThat is a Thing that is not ready for a reason.
func thingThat(name, reason, message string) string {
	return fmt.Sprintf(`
---
apiVersion: things.trimtab.dev/v1
kind: Thing
metadata: {name: %s}
spec: {}
status: {observedGeneration: 1, state: Pending, message: %q, conditions: [{type: Ready, status: "False", reason: %s, message: "", lastTransitionTime: "2026-01-02T03:04:05Z"}]}`, name, message, reason)
}

// TestWhy: in each situation, the root cause is named.
func TestWhy(t *testing.T) {
	t.Parallel()
	for _, s := range situations() {
		t.Run(s.name, func(t *testing.T) {
			w := newWorld(t)
			if s.before != nil {
				s.before(w)
			}
			w.put(s.manifests)
			if s.then != nil {
				s.then(w)
			}
			r := refOf(t, s.of, w.namespace)
			e, err := w.cluster(w.cfg).Why(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if e.Ready || e.Cause == nil {
				t.Fatalf("it is said to be ready: %+v", e)
			}
			var chain []string
			for _, l := range e.Chain {
				chain = append(chain, l.String())
			}
			if diff := cmp.Diff(s.chain, chain); diff != "" {
				t.Errorf("chain (-want +got):\n%s", diff)
			}
			in := func(text string) string { return strings.ReplaceAll(text, "NS", w.namespace) }
			if e.Cause.Code != s.code || !strings.Contains(e.Cause.Text, in(s.text)) || !strings.Contains(e.Cause.Remedy, in(s.remedy)) {
				t.Errorf("cause %+v, want %s: %s; %s", *e.Cause, s.code, in(s.text), in(s.remedy))
			}
			if len(e.Unseen) > 0 {
				t.Errorf("not seen: %q", e.Unseen)
			}
		})
	}
}

// TestCleared: what was looked at and is not the cause is said, such as an operator that leads.
func TestCleared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
	w.put(`apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: lead-NS}
rules: [{apiGroups: [probe.trimtab.dev], resources: [probes/status], verbs: [patch]}]
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: lead-NS}
spec: {holderIdentity: x, leaseDurationSeconds: 3600, renewTime: "` + now + `"}
---
` + strings.TrimPrefix(waits("TooLarge", "spec.size is more than 10", "Stalled"), "\n"))
	e, err := w.cluster(w.cfg).Why(t.Context(), refOf(t, "probe.trimtab.dev/v1 Probe a", w.namespace))
	if err != nil {
		t.Fatal(err)
	}
	cleared := strings.Join(e.Cleared, "\n")
	for _, want := range []string{"operator " + w.namespace + "/lead-" + w.namespace + " leads; it was seen ", "not paused", "generation 1 was observed"} {
		if !strings.Contains(cleared, want) {
			t.Errorf("not the cause: %q, want %q among them", e.Cleared, want)
		}
	}
}

func refOf(t *testing.T, of, namespace string) model.Ref {
	t.Helper()
	words := strings.Fields(of)
	if len(words) != 3 {
		t.Fatalf("%q", of)
	}
	return model.Ref{APIVersion: words[0], Kind: words[1], Namespace: namespace, Name: words[2]}
}

func (w *world) object(kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "probe.trimtab.dev", Version: "v1", Kind: kind})
	u.SetNamespace(w.namespace)
	u.SetName("a")
	return u
}

func (w *world) patch(kind, body string) {
	w.t.Helper()
	if err := w.client.Patch(w.t.Context(), w.object(kind), client.RawPatch("application/merge-patch+json", []byte(body))); err != nil {
		w.t.Fatal(err)
	}
}
