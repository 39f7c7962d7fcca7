package main

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/component/componenttest"
	"github.com/trimtab-dev/trimtab/generator/helm"
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
// it, and deletes it. Its hooks run in their time.
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

	jobs, deployments := watched(t, c, namespace, &batchv1.JobList{}), watched(t, c, namespace, &appsv1.DeploymentList{})
	if err := c.Delete(t.Context(), desk); err != nil {
		t.Fatal(err)
	}
	done := await(t, jobs, func(e watch.Event) bool {
		j, ok := e.Object.(*batchv1.Job)
		return ok && j.Name == "desk-export" && j.Status.Succeeded == 1
	})
	gone := await(t, deployments, func(e watch.Event) bool { return e.Type == watch.Deleted })
	if done > gone {
		t.Errorf("the hook of the deletion was done at version %d, after the Deployment was gone at %d", done, gone)
	}
	testenv.Gone(t, c, desk, "the Helpdesk to be gone")
	export := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "desk-export"}}
	for _, obj := range []client.Object{answers, migrate, cache, export} {
		testenv.Gone(t, c, obj, "it to be gone")
	}
}

// watched are the changes of objects of one kind from now on.
func watched(t *testing.T, c client.WithWatch, namespace string, list client.ObjectList) <-chan watch.Event {
	t.Helper()
	w, err := c.Watch(t.Context(), list, client.InNamespace(namespace))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w.ResultChan()
}

// await returns the version of the object in the first event that is ok.
func await(t *testing.T, events <-chan watch.Event, ok func(watch.Event) bool) int {
	t.Helper()
	for e := range events {
		if !ok(e) {
			continue
		}
		object, err := meta.Accessor(e.Object)
		if err != nil {
			t.Fatal(err)
		}
		version, err := strconv.Atoi(object.GetResourceVersion())
		if err != nil {
			t.Fatal(err)
		}
		return version
	}
	t.Fatal("the watch has ended")
	return 0
}

// renderer renders the chart. Definitions are left out: they are one for all components of a cluster.
func renderer(t *testing.T) (*helm.Generator, component.Renderer[*v1.Helpdesk]) {
	t.Helper()
	generator, err := helm.NewGenerator(chart, "chart", helm.Options{SkipCRDs: true})
	if err != nil {
		t.Fatal(err)
	}
	return generator, helm.NewRenderer(generator, values)
}

func helpdesk(replicas int32, cache bool) *v1.Helpdesk {
	return &v1.Helpdesk{
		ObjectMeta: metav1.ObjectMeta{Namespace: "support", Name: "desk"},
		Spec:       v1.HelpdeskSpec{Replicas: replicas, Greeting: "hello", Cache: v1.Cache{Enabled: cache}},
	}
}

// TestRendered: what the chart renders is reviewed as a file, and a spec at the limits of its kind satisfies the schema of
// the chart.
func TestRendered(t *testing.T) {
	t.Parallel()
	generator, r := renderer(t)
	componenttest.Golden(t, r, helpdesk(2, true), "testdata/rendered.yaml")
	for _, replicas := range []int32{1, 50} {
		if all, err := values(helpdesk(replicas, false)); err != nil || generator.Validate(all) != nil {
			t.Errorf("%d replicas: %v, %v", replicas, err, generator.Validate(all))
		}
	}
	if err := generator.Validate(map[string]any{"replicas": 51}); err == nil {
		t.Error("the schema is not checked")
	}
}

// TestKills: the operator is killed before and after each of its writes, and the next process finishes the work. There are
// more than a hundred runs, with Pods that start: make deep plays them.
func TestKills(t *testing.T) {
	if os.Getenv("TRIMTAB_DEEP") == "" {
		t.Skip("takes minutes; set TRIMTAB_DEEP=1")
	}
	_, r := renderer(t)
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, crds)
	componenttest.CrashSweep(t, componenttest.Sweep[*v1.Helpdesk]{
		Config: cfg, AddToScheme: v1.AddToScheme, Renderer: r, Options: component.Options[*v1.Helpdesk]{Name: "kills.test"},
		Versions: []*v1.Helpdesk{helpdesk(1, true), helpdesk(2, false)},
	})
}

// TestLines: the operator has at most 40 lines of logic.
func TestLines(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ = bytes.Cut(text, []byte("// region: operator\n"))
	lines := 0
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "// ") {
			lines++
		}
	}
	if lines == 0 || lines > 40 {
		t.Errorf("%d lines, want 1 to 40", lines)
	}
}
