package main

import (
	"os"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/operator/operatortest"
	v1 "github.com/trimtab-dev/trimtab/samples/guestbook/api/v1"
	"github.com/trimtab-dev/trimtab/testenv"
)

// asOperator makes the test binary the operator.
const asOperator = "TRIMTAB_TEST_AS_GUESTBOOK"

func TestMain(m *testing.M) {
	if os.Getenv(asOperator) != "" {
		main()
	}
	os.Exit(m.Run())
}

// TestGuestbook: the operator, in a process of its own and with the permissions of its own role, installs a
// guestbook, changes it, and deletes it.
func TestGuestbook(t *testing.T) {
	cfg := testenv.Start(t)
	c := testenv.Client(t, cfg, v1.AddToScheme)
	namespace := testenv.Namespace(t, cfg)
	binary := operatortest.Self(asOperator)
	flags := []string{"--watch-namespaces", namespace, "--leader-elect=false"}
	binary.Start(t, binary.Install(t, cfg, namespace, flags...), flags...)

	book := &v1.Guestbook{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "book"}, Spec: v1.GuestbookSpec{Welcome: "hello"}}
	if err := c.Create(t.Context(), book); err != nil {
		t.Fatal(err)
	}
	ready := func(b *v1.Guestbook) bool {
		return b.Status.AppliedGeneration == book.Generation && meta.IsStatusConditionTrue(b.Status.Conditions, api.ConditionReady)
	}
	testenv.Wait(t, c, book.DeepCopy(), "the guestbook to be Ready", ready)
	page := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "book"}}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(page), page); err != nil {
		t.Fatal(err)
	}
	if page.Status.ReadyReplicas != 2 {
		t.Errorf("the page has %d Pods that are ready, want 2", page.Status.ReadyReplicas)
	}

	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"pages":3,"welcome":"again"}}`))
	if err := c.Patch(t.Context(), book, patch); err != nil {
		t.Fatal(err)
	}
	testenv.Wait(t, c, book.DeepCopy(), "the guestbook to be Ready again", ready)
	testenv.Wait(t, c, page, "three Pods", func(d *appsv1.Deployment) bool { return d.Status.ReadyReplicas == 3 })

	if err := c.Delete(t.Context(), book); err != nil {
		t.Fatal(err)
	}
	testenv.Gone(t, c, book, "the guestbook to be gone")
	testenv.Gone(t, c, page, "the page to be gone")
	testenv.Gone(t, c, &corev1.Service{ObjectMeta: page.ObjectMeta}, "its Service to be gone")
}
