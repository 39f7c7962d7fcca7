package main

import (
	"os"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/operator/operatortest"
	v1 "github.com/trimtab-dev/trimtab/samples/chart/api/v1"
	"github.com/trimtab-dev/trimtab/testenv"
)

// asOperator makes the test binary the operator.
const asOperator = "TRIMTAB_TEST_AS_CHART"

func TestMain(m *testing.M) {
	if os.Getenv(asOperator) != "" {
		main()
	}
	os.Exit(m.Run())
}

// TestChart: the operator, in a process of its own and with the permissions of its own role, installs a chart, upgrades
// it, and deletes it.
func TestChart(t *testing.T) {
	cfg := testenv.Start(t)
	c := testenv.Client(t, cfg, v1.AddToScheme)
	namespace := testenv.Namespace(t, cfg)
	binary := operatortest.Self(asOperator)
	flags := []string{"--watch-namespaces", namespace, "--leader-elect=false"}
	binary.Start(t, binary.Install(t, cfg, namespace, flags...), flags...)

	desk := &v1.Helpdesk{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "desk"}, Spec: v1.HelpdeskSpec{Replicas: 2, Greeting: "hello"}}
	if err := c.Create(t.Context(), desk); err != nil {
		t.Fatal(err)
	}
	ready := func(h *v1.Helpdesk) bool {
		return h.Status.AppliedGeneration == h.Generation && meta.IsStatusConditionTrue(h.Status.Conditions, api.ConditionReady)
	}
	testenv.Wait(t, c, desk.DeepCopy(), "the Helpdesk to be Ready", ready)
	named := metav1.ObjectMeta{Namespace: namespace, Name: "desk"}
	answers := &appsv1.Deployment{ObjectMeta: named}
	testenv.Wait(t, c, answers, "two Pods", func(d *appsv1.Deployment) bool { return d.Status.ReadyReplicas == 2 })
	migrate := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "desk-migrate"}}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(migrate), migrate); err != nil {
		t.Fatal(err)
	}
	first := migrate.UID
	if migrate.CreationTimestamp.Before(&answers.CreationTimestamp) {
		t.Errorf("the hook ran at %s, before the Deployment of %s", migrate.CreationTimestamp, answers.CreationTimestamp)
	}

	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"greeting":"again","cache":{"enabled":true}}}`))
	if err := c.Patch(t.Context(), desk, patch); err != nil {
		t.Fatal(err)
	}
	testenv.Wait(t, c, desk.DeepCopy(), "the Helpdesk to be Ready again", func(h *v1.Helpdesk) bool { return h.Generation == desk.Generation && ready(h) })
	testenv.Wait(t, c, migrate, "the hook of the upgrade", func(j *batchv1.Job) bool { return j.UID != first && j.Status.Succeeded == 1 })
	cache := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "desk-cache"}}
	testenv.Wait(t, c, cache, "the cache", func(s *appsv1.StatefulSet) bool { return s.Status.ReadyReplicas == 1 })

	if err := c.Delete(t.Context(), desk); err != nil {
		t.Fatal(err)
	}
	testenv.Gone(t, c, desk, "the Helpdesk to be gone")
	for _, obj := range []client.Object{answers, migrate, cache} {
		testenv.Gone(t, c, obj, "it to be gone")
	}
}
