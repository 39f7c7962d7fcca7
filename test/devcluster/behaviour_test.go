package devcluster_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestVersionCanBeParsed(t *testing.T) {
	t.Parallel()
	got, err := shared(t).kube.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if got.GitVersion != shared(t).Version {
		t.Errorf("the server says version %q, the ready line %q", got.GitVersion, shared(t).Version)
	}
	v, err := version.ParseSemantic(got.GitVersion)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%d.%d", v.Major(), v.Minor()); got.Major+"."+got.Minor != want {
		t.Errorf("major and minor are %s.%s, want %s", got.Major, got.Minor, want)
	}
}

func TestGarbageCollection(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		why    string
		policy metav1.DeletionPropagation
		child  func(*unstructured.Unstructured) bool
	}{
		"background": {
			why:    "the owner goes at once and its dependents follow",
			policy: metav1.DeletePropagationBackground,
			child:  absent,
		},
		"foreground": {
			why:    "the owner stays until its dependents are gone",
			policy: metav1.DeletePropagationForeground,
			child:  absent,
		},
		"orphan": {
			why:    "the dependents lose the reference and stay",
			policy: metav1.DeletePropagationOrphan,
			child:  func(o *unstructured.Unstructured) bool { return o != nil && len(o.GetOwnerReferences()) == 0 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := shared(t).namespace(t)
			owner := shared(t).configMap(t, ns, "owner")
			shared(t).configMap(t, ns, "child", metav1.OwnerReference{
				APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: new(true),
			})
			err := shared(t).kube.CoreV1().ConfigMaps(ns).Delete(t.Context(), "owner", metav1.DeleteOptions{PropagationPolicy: &tc.policy})
			if err != nil {
				t.Fatal(err)
			}
			shared(t).await(t, "the owner is gone; "+tc.why, configMaps, ns, "owner", absent)
			if tc.policy == metav1.DeletePropagationForeground {
				_, err := shared(t).kube.CoreV1().ConfigMaps(ns).Get(t.Context(), "child", metav1.GetOptions{})
				wantReason(t, err, metav1.StatusReasonNotFound)
			}
			shared(t).await(t, "the child; "+tc.why, configMaps, ns, "child", tc.child)
		})
	}
}

func TestGarbageCollectionOfAForeignOwner(t *testing.T) {
	t.Parallel()
	ns := shared(t).namespace(t)
	owner := shared(t).configMap(t, ns, "owner")
	shared(t).configMap(t, ns, "child", metav1.OwnerReference{
		APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: types.UID("of-an-earlier-owner"),
	})
	shared(t).await(t, "a child of an owner that is gone follows, although its name is in use again", configMaps, ns, "child", absent)
}

func TestNamespaceDeletion(t *testing.T) {
	t.Parallel()
	ns := shared(t).namespace(t)
	shared(t).configMap(t, ns, "inside")
	if _, err := shared(t).kube.CoreV1().PersistentVolumeClaims(ns).Create(t.Context(), claim(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := shared(t).kube.CoreV1().Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := shared(t).kube.CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "late"},
	}, metav1.CreateOptions{})
	if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("create in a namespace that terminates: %v, want a refusal for that reason", err)
	}
	shared(t).await(t, "the namespace is gone", namespaces, "", ns, absent)
	left, err := shared(t).kube.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(left.Items) > 0 {
		t.Errorf("objects left in the namespace: %v", left.Items)
	}
}

// claim is an object that gets a finalizer at admission.
func claim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "claim"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: quantities("storage", "1Gi")},
		},
	}
}

func TestDeploymentBecomesAvailable(t *testing.T) {
	t.Parallel()
	ns := shared(t).namespace(t)
	labels := map[string]string{"app": "web"}
	web := applyappsv1.Deployment("web", ns).WithSpec(applyappsv1.DeploymentSpec().
		WithReplicas(3).
		WithSelector(applymetav1.LabelSelector().WithMatchLabels(labels)).
		WithTemplate(applycorev1.PodTemplateSpec().WithLabels(labels).
			WithSpec(applycorev1.PodSpec().WithContainers(applycorev1.Container().WithName("web").WithImage("web:1")))))
	if _, err := shared(t).kube.AppsV1().Deployments(ns).Apply(t.Context(), web, metav1.ApplyOptions{FieldManager: "test"}); err != nil {
		t.Fatal(err)
	}
	shared(t).await(t, "three replicas available", deployments, ns, "web", func(o *unstructured.Unstructured) bool {
		n, _, _ := unstructured.NestedInt64(o.Object, "status", "availableReplicas")
		return n == 3 && condition("Available")(o)
	})
	pods, err := shared(t).kube.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		if p.Spec.NodeName == "" || p.Status.Phase != corev1.PodRunning || p.Status.PodIP == "" {
			t.Errorf("pod %s on node %q in phase %s with address %q, want it running", p.Name, p.Spec.NodeName, p.Status.Phase, p.Status.PodIP)
		}
	}
}

func TestJobCompletes(t *testing.T) {
	t.Parallel()
	ns := shared(t).namespace(t)
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "once"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "once", Image: "once:1"}},
		}}},
	}
	if _, err := shared(t).kube.BatchV1().Jobs(ns).Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	shared(t).await(t, "the job is complete", jobs, ns, "once", condition("Complete"))
}

func TestPodThatFitsNowhereStaysPending(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "huge"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "huge", Image: "huge:1",
			Resources: corev1.ResourceRequirements{Requests: quantities("cpu", "1000")},
		}}},
	}
	eventually(t, "the namespace's ServiceAccount is there", func(ctx context.Context) error {
		_, err := c.kube.CoreV1().Pods(ns).Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
	c.await(t, "the scheduler says why", corev1.SchemeGroupVersion.WithResource("pods"), ns, "huge", func(o *unstructured.Unstructured) bool {
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		return strings.Contains(fmt.Sprint(conditions), "Insufficient cpu")
	})
}

// as is the access of a ServiceAccount through a token that was requested.
func as(t *testing.T, ns, account string) kubernetes.Interface {
	t.Helper()
	token, err := shared(t).kube.CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(600))}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(shared(t).config)
	config.BearerToken = token.Status.Token
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return kube
}

func TestServiceAccountsAndRBAC(t *testing.T) {
	t.Parallel()
	ns := shared(t).namespace(t)
	if _, err := shared(t).kube.CoreV1().ServiceAccounts(ns).Create(t.Context(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Name: "robot"},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	robot := as(t, ns, "robot")

	me, err := robot.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if want := "system:serviceaccount:" + ns + ":robot"; me.Status.UserInfo.Username != want {
		t.Errorf("the token is for %q, want %q", me.Status.UserInfo.Username, want)
	}
	_, err = robot.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{})
	wantReason(t, err, metav1.StatusReasonForbidden)

	// The role view is empty until a controller has aggregated it.
	if _, err := shared(t).kube.RbacV1().RoleBindings(ns).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "robot"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: "robot"}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the binding takes effect", func(ctx context.Context) error {
		_, err := robot.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{})
		return err
	})
	_, err = robot.CoreV1().Secrets(ns).List(t.Context(), metav1.ListOptions{})
	wantReason(t, err, metav1.StatusReasonForbidden)
}

func TestStrangersAreRefused(t *testing.T) {
	t.Parallel()
	stranger, err := kubernetes.NewForConfig(rest.AnonymousClientConfig(shared(t).config))
	if err != nil {
		t.Fatal(err)
	}
	_, err = stranger.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	wantReason(t, err, metav1.StatusReasonForbidden)
}

const widgetDefinition = `{
  "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
  "metadata": {"name": "widgets.devcluster.test"},
  "spec": {
    "group": "devcluster.test", "scope": "Namespaced",
    "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
    "versions": [{
      "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
      "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
        "type": "object",
        "description": "What a widget is like.",
        "properties": {
          "min": {"type": "integer", "description": "The least."},
          "max": {"type": "integer", "default": 10},
          "kind": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "kind is immutable"}]}
        },
        "x-kubernetes-validations": [{"rule": "self.min <= self.max", "message": "min is above max"}]
      }}}}
    }]
  }
}`

var widgets = schema.GroupVersionResource{Group: "devcluster.test", Version: "v1", Resource: "widgets"}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestCustomResourceWithCEL(t *testing.T) {
	t.Parallel()
	if _, err := shared(t).dyn.Resource(crds).Create(t.Context(), object(t, widgetDefinition), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	shared(t).await(t, "the definition is established", crds, "", "widgets.devcluster.test", condition("Established"))
	api := shared(t).dyn.Resource(widgets).Namespace(shared(t).namespace(t))
	widget := func(name, spec string) *unstructured.Unstructured {
		return object(t, `{"apiVersion": "devcluster.test/v1", "kind": "Widget", "metadata": {"name": "`+name+`"}, "spec": `+spec+`}`)
	}

	made, err := api.Create(t.Context(), widget("good", `{"min": 3, "kind": "round"}`), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, _, _ := unstructured.NestedInt64(made.Object, "spec", "max"); got != 10 {
		t.Errorf("spec.max = %d, want the default 10", got)
	}
	_, err = api.Create(t.Context(), widget("bad", `{"min": 11}`), metav1.CreateOptions{})
	wantReason(t, err, metav1.StatusReasonInvalid)
	if err != nil && !strings.Contains(err.Error(), "min is above max") {
		t.Errorf("error %q does not carry the rule's message", err)
	}
	if err := unstructured.SetNestedField(made.Object, "square", "spec", "kind"); err != nil {
		t.Fatal(err)
	}
	_, err = api.Update(t.Context(), made, metav1.UpdateOptions{})
	wantReason(t, err, metav1.StatusReasonInvalid)
}

func TestServerSideApplyConflicts(t *testing.T) {
	t.Parallel()
	ns := shared(t).namespace(t)
	api := shared(t).kube.CoreV1().ConfigMaps(ns)
	apply := func(manager, key, value string, force bool) (*corev1.ConfigMap, error) {
		return api.Apply(t.Context(), applycorev1.ConfigMap("shared", ns).WithData(map[string]string{key: value}),
			metav1.ApplyOptions{FieldManager: manager, Force: force})
	}
	for _, who := range []string{"alice", "bob"} {
		if _, err := apply(who, who, "1", false); err != nil {
			t.Fatalf("%s applies a field of her or his own: %v", who, err)
		}
	}
	_, err := apply("bob", "alice", "2", false)
	wantReason(t, err, metav1.StatusReasonConflict)
	if !apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) {
		t.Errorf("error %v names no conflict of field managers", err)
	}
	got, err := apply("bob", "alice", "2", true)
	if err != nil {
		t.Fatal(err)
	}
	if got.Data["alice"] != "2" || got.Data["bob"] != "" {
		t.Errorf("data = %v, want bob to own alice's field and to have dropped his", got.Data)
	}
}
