package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/operator/operatortest"
	v1 "github.com/trimtab-dev/trimtab/samples/webpage/api/v1"
	"github.com/trimtab-dev/trimtab/testenv"
)

// asOperator makes the test binary the operator.
const asOperator = "TRIMTAB_TEST_AS_WEBPAGE"

func TestMain(m *testing.M) {
	if os.Getenv(asOperator) != "" {
		main()
	}
	os.Exit(m.Run())
}

const (
	hello = "<html><body>Hello!</body></html>"
	bye   = "<html><body>Bye!</body></html>"
)

// TestWebPage: the operator, in a process of its own and with the permissions of its own role, serves a page: children
// are edited and deleted, the page is exposed and hidden, it is broken, and it goes.
func TestWebPage(t *testing.T) {
	cfg := testenv.Start(t)
	c := testenv.Client(t, cfg, v1.AddToScheme)
	namespace := testenv.Namespace(t, cfg)
	binary := operatortest.Self(asOperator)
	flags := []string{"--watch-namespaces", namespace, "--leader-elect=false"}
	binary.Start(t, binary.Install(t, cfg, namespace, flags...), flags...)

	named := metav1.ObjectMeta{Namespace: namespace, Name: "hello"}
	page := &v1.WebPage{ObjectMeta: named, Spec: v1.WebPageSpec{HTML: hello, Exposed: true}}
	html, server := &corev1.ConfigMap{ObjectMeta: named}, &appsv1.Deployment{ObjectMeta: named}
	service, way := &corev1.Service{ObjectMeta: named}, &networkingv1.Ingress{ObjectMeta: named}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	change := func(obj client.Object, body string) {
		t.Helper()
		do(c.Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(body))))
	}
	ready := func(status metav1.ConditionStatus, reason string) {
		t.Helper()
		page = testenv.Wait(t, c, page, "Ready to be "+reason, func(p *v1.WebPage) bool {
			r := meta.FindStatusCondition(p.Status.Conditions, api.ConditionReady)
			return r != nil && r.ObservedGeneration == p.Generation && r.Status == status && r.Reason == reason
		})
	}

	do(c.Create(t.Context(), page))
	ready(metav1.ConditionTrue, "Succeeded")
	if page.Status.HTMLConfigMap != "hello" || len(page.Finalizers) > 0 {
		t.Errorf("status.htmlConfigMap is %q, finalizers %v", page.Status.HTMLConfigMap, page.Finalizers)
	}
	for _, obj := range []client.Object{html, server, service, way} {
		do(c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
	}

	t.Run("edit a child", func(t *testing.T) {
		change(html, `{"data":{"index.html":"hacked"}}`)
		testenv.Wait(t, c, html, "the page to be repaired", func(m *corev1.ConfigMap) bool { return m.Data["index.html"] == hello })
	})
	t.Run("delete a child", func(t *testing.T) {
		old := server.UID
		do(c.Delete(t.Context(), server))
		testenv.Wait(t, c, server, "another server", func(d *appsv1.Deployment) bool { return d.UID != old && d.Status.ReadyReplicas == 1 })
		ready(metav1.ConditionTrue, "Succeeded")
	})
	t.Run("flip exposed", func(t *testing.T) {
		change(page, `{"spec":{"exposed":false}}`)
		testenv.Gone(t, c, way, "the ingress to be gone")
		ready(metav1.ConditionTrue, "Succeeded")
		change(page, `{"spec":{"exposed":true}}`)
		testenv.Wait(t, c, way, "another ingress", func(i *networkingv1.Ingress) bool { return i.DeletionTimestamp == nil })
		ready(metav1.ConditionTrue, "Succeeded")
	})
	t.Run("bad HTML", func(t *testing.T) {
		change(page, `{"spec":{"html":"no page"}}`)
		ready(metav1.ConditionFalse, "InvalidHTML")
		if !meta.IsStatusConditionTrue(page.Status.Conditions, api.ConditionStalled) || !strings.Contains(page.Status.Message, "has no <html>") {
			t.Errorf("status %+v", page.Status)
		}
		do(c.Get(t.Context(), client.ObjectKeyFromObject(html), html))
		if html.Data["index.html"] != hello {
			t.Errorf("served is %q", html.Data["index.html"])
		}
		change(page, `{"spec":{"html":"`+bye+`"}}`)
		ready(metav1.ConditionTrue, "Succeeded")
		testenv.Wait(t, c, html, "the new page", func(m *corev1.ConfigMap) bool { return m.Data["index.html"] == bye })
	})
	t.Run("delete", func(t *testing.T) {
		do(c.Delete(t.Context(), page))
		testenv.Gone(t, c, page, "the page to be gone")
		for _, obj := range []client.Object{html, server, service, way} {
			testenv.Gone(t, c, obj, "it to be gone")
		}
	})
}

// TestLines: the operator has at most 40 lines of logic. The objects are in a file of their own.
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
