package devcluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var (
	pods         = corev1.SchemeGroupVersion.WithResource("pods")
	claims       = corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
	volumes      = corev1.SchemeGroupVersion.WithResource("persistentvolumes")
	services     = corev1.SchemeGroupVersion.WithResource("services")
	ingresses    = networkingv1.SchemeGroupVersion.WithResource("ingresses")
	statefulSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	autoscalers  = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}
)

// at tells whether a field, such as status.phase, has a value.
func at(path, want string) func(*unstructured.Unstructured) bool {
	return func(o *unstructured.Unstructured) bool {
		if o == nil {
			return false
		}
		got, _, _ := unstructured.NestedFieldNoCopy(o.Object, strings.Split(path, ".")...)
		return got != nil && fmt.Sprint(got) == want
	}
}

// addresses are those in the status of a Service or an Ingress.
func addresses(o *unstructured.Unstructured) []string {
	if o == nil {
		return nil
	}
	entries, _, _ := unstructured.NestedSlice(o.Object, "status", "loadBalancer", "ingress")
	var out []string
	for _, e := range entries {
		if m, ok := e.(map[string]any); ok {
			out = append(out, fmt.Sprint(m["ip"]))
		}
	}
	return out
}

func (c *cluster) claim(t *testing.T, ns string, change func(*corev1.PersistentVolumeClaim)) {
	t.Helper()
	pvc := claim()
	if change != nil {
		change(pvc)
	}
	if _, err := c.kube.CoreV1().PersistentVolumeClaims(ns).Create(t.Context(), pvc, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func ofClass(name string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &name }
}

// bound waits until the claim of a namespace is bound, and returns the name of
// its volume.
func (c *cluster) bound(t *testing.T, ns string) string {
	t.Helper()
	c.await(t, "the claim is bound", claims, ns, "claim", at("status.phase", "Bound"))
	pvc, err := c.kube.CoreV1().PersistentVolumeClaims(ns).Get(t.Context(), "claim", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pvc.Spec.VolumeName
}

func (c *cluster) deleteClaim(t *testing.T, ns string) {
	t.Helper()
	if err := c.kube.CoreV1().PersistentVolumeClaims(ns).Delete(t.Context(), "claim", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// storageClass makes a class of the simulated storage and returns its name.
func (c *cluster) storageClass(t *testing.T, mode storagev1.VolumeBindingMode, policy corev1.PersistentVolumeReclaimPolicy) string {
	t.Helper()
	class, err := c.kube.StorageV1().StorageClasses().Create(t.Context(), &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}, Provisioner: "kubernetes.io/simulated",
		VolumeBindingMode: &mode, ReclaimPolicy: &policy,
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return class.Name
}

const dbManifest = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers:
      - name: db
        image: "db:1"
        resources: {requests: {cpu: 100m, memory: 128Mi, ephemeral-storage: 50Mi}}
        volumeMounts: [{name: data, mountPath: /data}, {name: log, mountPath: /log}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
  - metadata: {name: log}
    spec: {accessModes: [ReadWriteOnce], storageClassName: standard, resources: {requests: {storage: 2Gi}}}
`

func TestStatefulSetWithClaims(t *testing.T) {
	t.Parallel()
	ns := shared(t).namespace(t)
	shared(t).kubectl(t, 0, dbManifest, "-n", ns, "apply", "-f", "-")
	shared(t).await(t, "two replicas are ready", statefulSets, ns, "db", at("status.readyReplicas", "2"))
	for _, name := range []string{"data-db-0", "data-db-1", "log-db-0", "log-db-1"} {
		line := shared(t).kubectl(t, 0, "", "-n", ns, "get", "pvc", name, "--no-headers")
		size := map[bool]string{true: "1Gi", false: "2Gi"}[strings.HasPrefix(name, "data")]
		if f := strings.Fields(line); len(f) < 6 || f[1] != "Bound" || !strings.HasPrefix(f[2], "pvc-") || f[3] != size || f[4] != "RWO" || f[5] != "standard" {
			t.Errorf("kubectl get pvc: %q, want it bound with %s", line, size)
		}
	}
}

func TestClaimWaitsForItsFirstConsumer(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	c.claim(t, ns, ofClass(c.storageClass(t, storagev1.VolumeBindingWaitForFirstConsumer, corev1.PersistentVolumeReclaimDelete)))
	eventually(t, "the binder says that it waits", func(ctx context.Context) error {
		list, err := c.kube.CoreV1().Events(ns).List(ctx, metav1.ListOptions{FieldSelector: "reason=WaitForFirstConsumer"})
		if err == nil && len(list.Items) == 0 {
			err = fmt.Errorf("no event yet")
		}
		return err
	})
	c.await(t, "the claim waits", claims, ns, "claim", at("status.phase", "Pending"))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "consumer"},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "consumer", Image: "consumer:1"}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"},
			}}},
		},
	}
	eventually(t, "the namespace's ServiceAccount is there", func(ctx context.Context) error {
		_, err := c.kube.CoreV1().Pods(ns).Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
	c.bound(t, ns)
	c.await(t, "the consumer runs", pods, ns, "consumer", at("status.phase", "Running"))
}

func TestReclaimPolicies(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		why    string
		class  corev1.PersistentVolumeReclaimPolicy
		change corev1.PersistentVolumeReclaimPolicy
		kept   bool
	}{
		"Delete":         {why: "the volume goes with its claim", class: corev1.PersistentVolumeReclaimDelete},
		"Retain":         {why: "somebody else decides about the data", class: corev1.PersistentVolumeReclaimRetain, kept: true},
		"changed policy": {why: "the policy of the volume counts", class: corev1.PersistentVolumeReclaimDelete, change: corev1.PersistentVolumeReclaimRetain, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := shared(t).namespace(t)
			shared(t).claim(t, ns, ofClass(shared(t).storageClass(t, storagev1.VolumeBindingImmediate, tc.class)))
			volume := shared(t).bound(t, ns)
			api := shared(t).kube.CoreV1().PersistentVolumes()
			if tc.change != "" {
				patch := fmt.Appendf(nil, `{"spec":{"persistentVolumeReclaimPolicy":%q}}`, tc.change)
				if _, err := api.Patch(t.Context(), volume, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			shared(t).deleteClaim(t, ns)
			if tc.kept {
				shared(t).await(t, "the volume is kept; "+tc.why, volumes, "", volume, at("status.phase", "Released"))
				if err := api.Delete(t.Context(), volume, metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			shared(t).await(t, "the volume is gone; "+tc.why, volumes, "", volume, absent)
		})
	}
}

// TestStaticVolume binds a volume of type hostPath. Its reclaim policy deletes
// the object, and must leave alone what is at that path on this machine.
func TestStaticVolume(t *testing.T) {
	t.Parallel()
	ns := shared(t).namespace(t)
	file := filepath.Join(t.TempDir(), "precious")
	writeFile(t, file, "data")
	if _, err := shared(t).kube.CoreV1().PersistentVolumes().Create(t.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: "by-hand-" + ns, Capacity: quantities("storage", "5Gi"),
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: filepath.Dir(file)}},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	shared(t).await(t, "the volume is available", volumes, "", ns, at("status.phase", "Available"))
	shared(t).claim(t, ns, ofClass("by-hand-"+ns))
	if got := shared(t).bound(t, ns); got != ns {
		t.Errorf("the claim is bound to %q, want %q", got, ns)
	}
	shared(t).await(t, "the claim reports all that it has", claims, ns, "claim", at("status.capacity.storage", "5Gi"))
	shared(t).deleteClaim(t, ns)
	shared(t).await(t, "the volume is gone", volumes, "", ns, absent)
	if _, err := os.Stat(file); err != nil {
		t.Errorf("a file of this machine was removed: %v", err)
	}
}

func TestClaimGrows(t *testing.T) {
	t.Parallel()
	ns := shared(t).namespace(t)
	shared(t).claim(t, ns, nil)
	volume := shared(t).bound(t, ns)
	api := shared(t).kube.CoreV1().PersistentVolumeClaims(ns)
	patch := []byte(`{"spec":{"resources":{"requests":{"storage":"3Gi"}}}}`)
	if _, err := api.Patch(t.Context(), "claim", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	shared(t).await(t, "the claim has what it asked for", claims, ns, "claim", at("status.capacity.storage", "3Gi"))
	shared(t).await(t, "so has its volume", volumes, "", volume, at("spec.capacity.storage", "3Gi"))

	// Somebody else writes a status without a capacity: nothing grows, and other claims are bound.
	if _, err := api.Patch(t.Context(), "claim", types.MergePatchType, []byte(`{"status":{"capacity":null}}`), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	other := shared(t).namespace(t)
	shared(t).claim(t, other, nil)
	shared(t).bound(t, other)
}

func TestLoadBalancer(t *testing.T) {
	t.Parallel()
	ns := shared(t).namespace(t)
	api := shared(t).kube.CoreV1().Services(ns)
	create := func(name string, change func(*corev1.ServiceSpec)) {
		t.Helper()
		s := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}},
		}
		if change != nil {
			change(&s.Spec)
		}
		if _, err := api.Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	found := map[string]string{}
	addressed := func(name string) {
		t.Helper()
		shared(t).await(t, "the Service has an address", services, ns, name, func(o *unstructured.Unstructured) bool {
			a := addresses(o)
			if len(a) == 1 {
				found[name] = a[0]
			}
			return len(a) == 1
		})
	}
	create("foreign", func(s *corev1.ServiceSpec) { s.LoadBalancerClass = new("example.com/other") })
	create("inside", func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeClusterIP })
	create("wished", func(s *corev1.ServiceSpec) { s.LoadBalancerIP = "192.0.2.7" })
	create("one", nil)
	create("two", nil)
	for _, name := range []string{"wished", "one", "two"} {
		addressed(name)
	}
	if found["wished"] != "192.0.2.7" || found["one"] == found["two"] {
		t.Errorf("the addresses are %v, want the one that was asked for and two others", found)
	}
	if line := shared(t).kubectl(t, 0, "", "-n", ns, "get", "service", "one", "--no-headers"); strings.Fields(line)[3] != found["one"] {
		t.Errorf("kubectl get service: %q, want the address %s", line, found["one"])
	}
	// Services are served in the order of their creation.
	for _, name := range []string{"foreign", "inside"} {
		shared(t).await(t, "the Service has no address", services, ns, name, func(o *unstructured.Unstructured) bool {
			return o != nil && len(addresses(o)) == 0
		})
	}
	patch := []byte(`{"spec":{"type":"ClusterIP"}}`)
	if _, err := api.Patch(t.Context(), "one", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	shared(t).await(t, "the address is gone", services, ns, "one", func(o *unstructured.Unstructured) bool {
		return o != nil && len(addresses(o)) == 0
	})
}

func TestIngress(t *testing.T) {
	t.Parallel()
	ns := shared(t).namespace(t)
	foreign := "test-" + ns
	create := func(name string, class *string) {
		t.Helper()
		if _, err := shared(t).kube.NetworkingV1().Ingresses(ns).Create(t.Context(), &networkingv1.Ingress{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: networkingv1.IngressSpec{
				IngressClassName: class,
				DefaultBackend: &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
					Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80},
				}},
			},
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	addressed := func(o *unstructured.Unstructured) bool { return len(addresses(o)) == 1 }
	create("foreign", &foreign)
	create("plain", nil)
	shared(t).await(t, "an Ingress without a class has an address", ingresses, ns, "plain", addressed)
	if line := shared(t).kubectl(t, 0, "", "-n", ns, "get", "ingress", "plain", "--no-headers"); !slices.Equal(strings.Fields(line)[1:4], []string{"simulated", "*", "198.19.0.1"}) {
		t.Errorf("kubectl get ingress: %q, want the class simulated and its address", line)
	}
	// Ingresses are served in the order of their creation.
	shared(t).await(t, "one of another class has none", ingresses, ns, "foreign", func(o *unstructured.Unstructured) bool {
		return o != nil && len(addresses(o)) == 0
	})
	if _, err := shared(t).kube.NetworkingV1().IngressClasses().Create(t.Context(), &networkingv1.IngressClass{
		ObjectMeta: metav1.ObjectMeta{Name: foreign},
		Spec:       networkingv1.IngressClassSpec{Controller: "trimtab.dev/simulated"},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	shared(t).await(t, "the class names the simulated controller", ingresses, ns, "foreign", addressed)
	patch := []byte(`{"spec":{"ingressClassName":"none-` + ns + `"}}`)
	if _, err := shared(t).kube.NetworkingV1().Ingresses(ns).Patch(t.Context(), "plain", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	shared(t).await(t, "its address goes with its class", ingresses, ns, "plain", func(o *unstructured.Unstructured) bool {
		return o != nil && len(addresses(o)) == 0
	})
}

func TestFinishedJobGoes(t *testing.T) {
	t.Parallel()
	for _, policy := range []corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			ns := shared(t).namespace(t)
			job := &batchv1.Job{
				ObjectMeta: metav1.ObjectMeta{Name: "once", Finalizers: []string{"devcluster.test/watched"}},
				Spec: batchv1.JobSpec{
					Completions: new(int32(2)), TTLSecondsAfterFinished: new(int32(0)),
					Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
						RestartPolicy:  policy,
						InitContainers: []corev1.Container{{Name: "before", Image: "before:1"}},
						Containers:     []corev1.Container{{Name: "once", Image: "once:1"}, {Name: "beside", Image: "beside:1"}},
					}},
				},
			}
			if _, err := shared(t).kube.BatchV1().Jobs(ns).Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			shared(t).await(t, "the job is complete and is being deleted", jobs, ns, "once", func(o *unstructured.Unstructured) bool {
				return condition("Complete")(o) && at("status.succeeded", "2")(o) && o.GetDeletionTimestamp() != nil
			})
			patch := []byte(`{"metadata":{"finalizers":null}}`)
			if _, err := shared(t).kube.BatchV1().Jobs(ns).Patch(t.Context(), "once", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			shared(t).await(t, "the job is gone", jobs, ns, "once", absent)
		})
	}
}

const autoscalerManifest = `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 3
  maxReplicas: 5
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]
`

func TestAutoscaler(t *testing.T) {
	t.Parallel()
	ns := shared(t).namespace(t)
	web := strings.Replace(webManifest, `image: "web:1"`, `image: "web:1", resources: {requests: {cpu: 100m}}`, 1)
	shared(t).kubectl(t, 0, web, "-n", ns, "apply", "-f", "-")
	shared(t).await(t, "the Deployment is available", deployments, ns, "web", condition("Available"))
	shared(t).kubectl(t, 0, autoscalerManifest, "-n", ns, "apply", "-f", "-")
	shared(t).await(t, "the autoscaler asks for its least", deployments, ns, "web", at("status.readyReplicas", "3"))
	shared(t).await(t, "the autoscaler has metrics", autoscalers, ns, "web", func(o *unstructured.Unstructured) bool {
		return condition("AbleToScale")(o) && condition("ScalingActive")(o)
	})
}

// TestNodes wants as many nodes as are asked for, and nothing simulated without any. It looks into the audit log: what does not
// happen cannot be waited for.
func TestNodes(t *testing.T) {
	t.Parallel()
	for _, count := range []int{0, 3} {
		t.Run(strconv.Itoa(count), func(t *testing.T) {
			t.Parallel()
			simulated := count > 0
			file := filepath.Join(t.TempDir(), "audit.jsonl")
			c := start(t, nil, "--nodes", strconv.Itoa(count), "--audit-log", file)
			nodes, err := c.kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
			if err != nil || len(nodes.Items) != count {
				t.Errorf("%d nodes (%v), want %d", len(nodes.Items), err, count)
			}
			classes := c.kubectl(t, 0, "", "get", "storageclasses,ingressclasses", "-o", "name")
			if got := strings.Contains(classes, "standard") && strings.Contains(classes, "simulated"); got != simulated || !simulated && classes != "" {
				t.Errorf("with %d nodes, the classes are %q", count, classes)
			}
			c.claim(t, "default", ofClass("standard"))
			if simulated {
				c.bound(t, "default")
			} else {
				c.await(t, "the claim stays as it is", claims, "default", "claim", at("status.phase", "Pending"))
			}
			if err := c.terminate(); err != nil {
				t.Fatal(err)
			}
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			requests := 0
			for line := range strings.Lines(string(content)) {
				var e struct{ UserAgent string }
				if err := json.Unmarshal([]byte(line), &e); err != nil {
					t.Fatalf("line %q: %v", line, err)
				}
				if e.UserAgent == "simulation" {
					requests++
				}
			}
			if (requests > 0) != simulated {
				t.Errorf("with %d nodes, the simulation sent %d requests", count, requests)
			}
		})
	}
}

func TestDefaultClaimIsImmediate(t *testing.T) {
	t.Parallel()
	ns := shared(t).namespace(t)
	shared(t).claim(t, ns, func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("7Gi")}
	})
	volume := shared(t).bound(t, ns)
	shared(t).await(t, "the volume is of the default class", volumes, "", volume, func(o *unstructured.Unstructured) bool {
		return at("spec.storageClassName", "standard")(o) && at("spec.capacity.storage", "7Gi")(o) &&
			at("spec.persistentVolumeReclaimPolicy", "Delete")(o) && at("status.phase", "Bound")(o)
	})
}
