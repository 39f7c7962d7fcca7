package apiserver

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
}

// A pod gets what a real cluster gives it: an account with its token, tolerations, a priority.
func TestPodsAreCompleted(t *testing.T) {
	w := newGuardedCluster(t)
	_, err := w.admin().CoreV1().ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Name: "mine"}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}},
		AutomountServiceAccountToken: new(false),
	}, metav1.CreateOptions{})
	wantMessage(t, err, "")
	made, err := w.admin().CoreV1().Pods("default").Create(t.Context(), pod("p"), metav1.CreateOptions{})
	wantMessage(t, err, "")
	type summary struct {
		Account, Volume, Mount string
		Tolerations            []string
		Priority               int32
		Policy                 corev1.PreemptionPolicy
	}
	got := summary{Account: made.Spec.ServiceAccountName, Priority: *made.Spec.Priority, Policy: *made.Spec.PreemptionPolicy}
	for _, v := range made.Spec.Volumes {
		got.Volume += v.Name
	}
	for _, m := range made.Spec.Containers[0].VolumeMounts {
		got.Mount += m.Name + m.MountPath
	}
	for _, t := range made.Spec.Tolerations {
		got.Tolerations = append(got.Tolerations, t.Key)
	}
	want := summary{
		Account: "default", Volume: "kube-api-access-dg2zb", Mount: "kube-api-access-dg2zb/var/run/secrets/kubernetes.io/serviceaccount",
		Tolerations: []string{"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}, Policy: corev1.PreemptLowerPriority,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("pod (-want +got):\n%s", d)
	}

	own := pod("own")
	own.Spec.ServiceAccountName, own.Spec.PriorityClassName = "mine", "system-cluster-critical"
	made, err = w.admin().CoreV1().Pods("default").Create(t.Context(), own, metav1.CreateOptions{})
	wantMessage(t, err, "")
	if len(made.Spec.Volumes) != 0 || *made.Spec.Priority != 2000000000 || made.Spec.ImagePullSecrets[0].Name != "pull" {
		t.Errorf("pod of an account: %v", made.Spec)
	}
}

func TestPodsAreRefused(t *testing.T) {
	tests := map[string]struct {
		why  string
		edit func(*corev1.Pod)
		want string
	}{
		"account": {
			"an account must exist", func(p *corev1.Pod) { p.Spec.ServiceAccountName = "none" },
			`pods "p" is forbidden: error looking up service account default/none: serviceaccount "none" not found`,
		},
		"class": {
			"a priority class must exist", func(p *corev1.Pod) { p.Spec.PriorityClassName = "none" },
			`pods "p" is forbidden: no PriorityClass with name none was found`,
		},
		"priority": {
			"a priority comes from a class", func(p *corev1.Pod) { p.Spec.Priority = new(int32(7)) },
			`pods "p" is forbidden: the integer value of priority (7) must not be provided in pod spec; priority admission controller computed 0 from the given PriorityClass name`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w, p := newGuardedCluster(t), pod("p")
			test.edit(p)
			_, err := w.admin().CoreV1().Pods("default").Create(t.Context(), p, metav1.CreateOptions{})
			wantMessage(t, err, test.want)
		})
	}
}

func TestDefaultClasses(t *testing.T) {
	w := newGuardedCluster(t)
	c, create := w.admin(), metav1.CreateOptions{}
	_, err := c.StorageV1().StorageClasses().Create(t.Context(), &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "fast", Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}}, Provisioner: "p",
	}, create)
	wantMessage(t, err, "")
	_, err = c.NetworkingV1().IngressClasses().Create(t.Context(), &networkingv1.IngressClass{
		ObjectMeta: metav1.ObjectMeta{Name: "front", Annotations: map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"}},
		Spec:       networkingv1.IngressClassSpec{Controller: "example.com/c"},
	}, create)
	wantMessage(t, err, "")
	_, err = c.SchedulingV1().PriorityClasses().Create(t.Context(), &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: "usual"}, Value: 5, GlobalDefault: true,
	}, create)
	wantMessage(t, err, "")

	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
	claim, err = c.CoreV1().PersistentVolumeClaims("default").Create(t.Context(), claim, create)
	wantMessage(t, err, "")
	if *claim.Spec.StorageClassName != "fast" || !cmp.Equal(claim.Finalizers, []string{"kubernetes.io/pvc-protection"}) {
		t.Errorf("claim: class %q, finalizers %q", *claim.Spec.StorageClassName, claim.Finalizers)
	}
	ingress := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: "i"}, Spec: networkingv1.IngressSpec{
		DefaultBackend: &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "s", Port: networkingv1.ServiceBackendPort{Number: 1}}},
	}}
	ingress, err = c.NetworkingV1().Ingresses("default").Create(t.Context(), ingress, create)
	wantMessage(t, err, "")
	if *ingress.Spec.IngressClassName != "front" {
		t.Errorf("ingress: class %q", *ingress.Spec.IngressClassName)
	}
	p, err := c.CoreV1().Pods("default").Create(t.Context(), pod("p"), create)
	wantMessage(t, err, "")
	if p.Spec.PriorityClassName != "usual" || *p.Spec.Priority != 5 {
		t.Errorf("pod: class %q, priority %d", p.Spec.PriorityClassName, *p.Spec.Priority)
	}
}

func TestGeneratedNamesAreTheSameInEachRun(t *testing.T) {
	run := func() (names []string) {
		w := newGuardedCluster(t)
		for range 3 {
			m, err := w.admin().CoreV1().ConfigMaps("default").Create(t.Context(),
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "a-"}}, metav1.CreateOptions{})
			wantMessage(t, err, "")
			names = append(names, m.Name)
		}
		return names
	}
	first := run()
	if d := cmp.Diff(first, run()); d != "" {
		t.Errorf("names (-first +second):\n%s", d)
	}
	for i, name := range first {
		if !regexp.MustCompile(`^a-[bcdfghjklmnpqrstvwxz2456789]{5}$`).MatchString(name) || i > 0 && name == first[i-1] {
			t.Errorf("names: %q", first)
		}
	}
}
