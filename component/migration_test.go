package component_test

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/testenv"
)

func TestMigration(t *testing.T) {
	t.Parallel()
	t.Run("B-20 an object of a Helm release is adopted only if that is asked for", func(t *testing.T) {
		t.Parallel()
		b := prepareBench(t)
		theirs := configMap("one", "1")
		theirs.Namespace, theirs.Annotations = b.namespace, map[string]string{"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop"}
		if err := b.as("helm").Create(t.Context(), theirs); err != nil {
			t.Fatal(err)
		}
		b.start()
		b.create(configMap("one", "2"))
		b.await("refused", func(o *bundle.Bundle) bool {
			return strings.Contains(o.Status.Message, "exists and belongs to the Helm release shop/web; set "+b.key("adoption-policy")+": always, or remove its annotation meta.helm.sh/release-name, to adopt it")
		})
		b.merge("them", b.named("one"), `{"metadata":{"annotations":{"meta.helm.sh/release-name":null}}}`)
		b.ready()
	})
	t.Run("B-20 a Job that exists runs if its policy is to create it again", func(t *testing.T) {
		t.Parallel()
		b := prepareBench(t)
		theirs := migration("1")
		theirs.Namespace = b.namespace
		if err := b.admin.Create(t.Context(), theirs); err != nil {
			t.Fatal(err)
		}
		b.status(b.in(object("batch/v1", "Job", "migrate", nil)), jobCompleted)
		b.start()
		ours := migration("1")
		ours.Annotations = map[string]string{b.key("update-policy"): "recreate"}
		b.create(ours)
		again := testenv.Wait(t, b.admin, b.in(object("batch/v1", "Job", "migrate", nil)), "another Job", func(o *unstructured.Unstructured) bool {
			return o.GetUID() != theirs.UID && o.GetAnnotations()[b.key("owner-id")] != ""
		})
		b.status(again, jobCompleted)
		b.ready()
	})
	t.Run("B-20 a Helm 3 release is adopted without a restart", func(t *testing.T) {
		t.Parallel()
		b := prepareBench(t)
		release := deployment("web", "example.org/web:1")
		release.Namespace, release.Spec.Replicas = b.namespace, new(int32(1))
		release.Labels = map[string]string{"app.kubernetes.io/managed-by": "Helm"}
		release.Annotations = map[string]string{"meta.helm.sh/release-name": "web"}
		release.Spec.MinReadySeconds = 3
		if err := b.as("helm").Create(t.Context(), release); err != nil {
			t.Fatal(err)
		}
		testenv.Wait(t, b.admin, deploymentIn(b.namespace), "the release's first ReplicaSet, which no restart makes any more", func(d *appsv1.Deployment) bool {
			return d.Status.Replicas == 1
		})
		b.merge("kubectl-rollout", deployment("web", ""), `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"now"}}}}}`)
		before := b.pod(`kubectl.kubernetes.io/restartedAt`)
		b.start()
		ours := deployment("web", "example.org/web:1")
		ours.Spec.Replicas, ours.Annotations = new(int32(1)), map[string]string{b.key("adoption-policy"): "always"}
		b.create(ours)
		live := testenv.Wait(t, b.admin, deploymentIn(b.namespace), "adopted", func(d *appsv1.Deployment) bool {
			return d.Annotations[b.key("owner-id")] != "" && d.Annotations["meta.helm.sh/release-name"] == "" && d.Status.ObservedGeneration == d.Generation
		})
		if live.UID != release.UID || live.Labels["app.kubernetes.io/managed-by"] != "" || live.Spec.MinReadySeconds != 0 {
			t.Errorf("the release's own values are left: %v, %d", live.Labels, live.Spec.MinReadySeconds)
		}
		for _, e := range live.ManagedFields {
			if e.Manager == "helm" {
				t.Error("helm still owns fields")
			}
		}
		var sets appsv1.ReplicaSetList
		if err := b.admin.List(t.Context(), &sets, client.InNamespace(b.namespace)); err != nil {
			t.Fatal(err)
		}
		if after := b.pod(`kubectl.kubernetes.io/restartedAt`); after != before {
			t.Errorf("Pod %s was restarted as %s", before, after)
		}
		generation := live.Status.ObservedGeneration
		if len(sets.Items) != 2 { // those of the release before and after its own restart
			t.Errorf("%d ReplicaSets at generation %d, want 2", len(sets.Items), generation)
		}
	})
}

// deploymentIn names the release's Deployment.
func deploymentIn(namespace string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
}

// pod waits for a Pod with an annotation and returns its UID.
func (b *bench) pod(annotation string) types.UID {
	b.t.Helper()
	var found corev1.Pod
	testenv.Wait(b.t, b.admin, deploymentIn(b.namespace), "a Pod with annotation "+annotation, func(*appsv1.Deployment) bool {
		var pods corev1.PodList
		if err := b.admin.List(b.t.Context(), &pods, client.InNamespace(b.namespace)); err != nil {
			return false
		}
		for _, p := range pods.Items {
			if p.Annotations[annotation] != "" && p.DeletionTimestamp == nil {
				found = p
				return true
			}
		}
		return false
	})
	return found.UID
}

// admissionIsNoFight: a policy changes what the operator applies, in every request.
func admissionIsNoFight(t *testing.T) {
	b := prepareBench(t)
	name := strings.ReplaceAll(b.operator, ".", "-")
	for _, o := range mutation(name, b.namespace) {
		if err := b.admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.admin.Delete(t.Context(), o) })
	}
	probe := configMap("probe", "1")
	probe.Namespace = b.namespace
	if err := b.admin.Create(t.Context(), probe); err != nil {
		t.Fatal(err)
	}
	testenv.Wait(t, b.admin, b.named("probe"), "the policy works", func(m *corev1.ConfigMap) bool {
		if m.Data["value"] != "mutated" {
			b.merge("probe", b.named("probe"), `{"metadata":{"labels":{"a":"`+m.ResourceVersion+`"}}}`)
		}
		return m.Data["value"] == "mutated"
	})
	b.start()
	b.create(configMap("one", "1"))
	b.ready()
	for range 5 {
		b.fence()
	}
	b.wrote("one", 1)
	b.merge("them", b.named("one"), `{"metadata":{"labels":{"theirs":"x"}}}`)
	b.fence()
	b.wrote("one", 1)
	b.await("ready", func(o *bundle.Bundle) bool { return isReady(o) })
}

// mutation is a policy that sets data.value of ConfigMaps in a namespace.
func mutation(name, namespace string) []client.Object {
	return []client.Object{
		&admissionv1.MutatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionv1.MutatingAdmissionPolicySpec{
				ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
				MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionv1.RuleWithOperations{
						Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
						Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
					},
				}}},
				Mutations: []admissionv1.Mutation{{
					PatchType:          admissionv1.PatchTypeApplyConfiguration,
					ApplyConfiguration: &admissionv1.ApplyConfiguration{Expression: `Object{data: {"value": "mutated"}}`},
				}},
			},
		},
		&admissionv1.MutatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{
				PolicyName: name,
				MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
					MatchLabels: map[string]string{corev1.LabelMetadataName: namespace},
				}},
			},
		},
	}
}
