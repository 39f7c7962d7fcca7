package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	v1 "github.com/trimtab-dev/trimtab/samples/folder/api/v1"
	"github.com/trimtab-dev/trimtab/testenv"
)

// tenants is a world of two namespaces whose people are not each other's friends. The kind
// cannot hold marks, so that nothing but the objects tells whose a folder is.
type tenants struct {
	*world
	evil string
}

func newTenants(t *testing.T, flags ...string) *tenants {
	t.Helper()
	evil := testenv.Namespace(t, testenv.Start(t))
	w := newWorld(t, append([]string{"--watch-namespaces", evil}, flags...)...)
	w.start(w.account)
	return &tenants{world: w, evil: evil}
}

// attack makes an object of the same name in the other namespace.
func (w *tenants) attack(annotations map[string]string) *v1.Folder {
	w.t.Helper()
	f := &v1.Folder{ObjectMeta: metav1.ObjectMeta{Namespace: w.evil, Name: "orders", Annotations: annotations}, Spec: v1.FolderSpec{ReadOnly: true}}
	w.do(w.client.Create(w.t.Context(), f))
	return f
}

// forge gives an object a record which says that the folder is its own.
func (w *tenants) forge(f *v1.Folder, adopted string) {
	w.t.Helper()
	record := fmt.Sprintf(`{"id":"orders","inc":1,"uid":%q,"create":{"at":"2026-01-05T10:11:12Z","by":"forged"}%s}`, f.UID, adopted)
	w.merge(f, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, api.AnnotationExternal, record))
}

// says waits until the object is refused with a reason, and wants a text in the message.
func (w *tenants) says(f *v1.Folder, reason, text string) {
	w.t.Helper()
	f = testenv.Wait(w.t, w.client, f, "Ready=False for "+reason, func(f *v1.Folder) bool {
		c := meta.FindStatusCondition(f.Status.Conditions, api.ConditionReady)
		return c != nil && c.Status == metav1.ConditionFalse && c.Reason == reason
	})
	if c := meta.FindStatusCondition(f.Status.Conditions, api.ConditionReady); !strings.Contains(c.Message, text) {
		w.t.Errorf("%s says %q; want %q in it", f.Namespace, c.Message, text)
	}
}

var mine = []string{"drwxr-xr-x orders"}

func TestOneFolderOneObject(t *testing.T) {
	w := newTenants(t, "--adoption-limit", "always")
	ours := w.ready(w.create(v1.FolderSpec{}))
	t.Run("whatever annotations say", func(t *testing.T) {
		theirs := w.attack(map[string]string{api.AnnotationAdoption: "always"})
		w.says(theirs, "NotOurs", `"orders" belongs to Folder `+w.namespace+"/orders")
		w.want("refused", mine...)
		w.delete(theirs)
		w.want("refused, and the object is gone", mine...)
	})
	t.Run("a copy with the other's record", func(t *testing.T) {
		record := w.record(ours)
		theirs := w.attack(map[string]string{api.AnnotationExternal: record, api.AnnotationAdoption: "always"})
		w.says(theirs, "NotOurs", "belongs to Folder "+w.namespace+"/orders")
		w.delete(theirs)
		w.want("a copy", mine...)
	})
	t.Run("a forged adoption", func(t *testing.T) {
		theirs := w.attack(nil)
		w.says(theirs, "NotOurs", "belongs to")
		w.forge(theirs, `,"adopted":"unmarked"`)
		w.look(theirs, "1")
		w.says(theirs, "NotOurs", "belongs to")
		w.delete(theirs)
		w.want("forged", mine...)
	})
	t.Run("a forged record", func(t *testing.T) {
		theirs := w.attack(nil)
		w.says(theirs, "NotOurs", "belongs to")
		w.forge(theirs, "")
		w.look(theirs, "1")
		w.says(theirs, "Contested", "Folder "+w.namespace+"/orders both have a record")
		w.merge(ours, `{"spec":{"readOnly":true}}`)
		w.says(ours, "Contested", "deleted with annotation trimtab.dev/deletion=orphan")
		w.want("nothing proves either", mine...)
		w.delete(theirs)
		w.ready(ours)
		w.want("the other is gone", "dr-xr-xr-x orders")
	})
	t.Run("the second has it when the first leaves it", func(t *testing.T) {
		theirs := w.attack(map[string]string{api.AnnotationAdoption: "always"})
		w.says(theirs, "NotOurs", "belongs to")
		w.merge(ours, `{"metadata":{"annotations":{"`+api.AnnotationDeletion+`":"orphan"}}}`)
		w.delete(ours)
		w.ready(theirs)
	})
}

func (w *tenants) record(f *v1.Folder) string {
	w.t.Helper()
	w.do(w.client.Get(w.t.Context(), client.ObjectKeyFromObject(f), f))
	return f.Annotations[api.AnnotationExternal]
}

// An object that was copied under another name has a folder of its own.
func TestCopyUnderAnotherName(t *testing.T) {
	w := newTenants(t)
	ours := w.ready(w.create(v1.FolderSpec{}))
	twin := &v1.Folder{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "copy", Annotations: map[string]string{api.AnnotationExternal: w.record(ours)}}}
	w.do(w.client.Create(t.Context(), twin))
	w.ready(twin)
	w.want("its own", "drwxr-xr-x copy", "drwxr-xr-x orders")
	w.delete(twin)
	w.want("and no other", mine...)
}

// The record on a living object is the operator's alone to write.
func TestRecordsAreTheOperators(t *testing.T) {
	w := newTenants(t)
	ours := w.ready(w.create(v1.FolderSpec{}))
	user := w.as("edits-folders", rbacv1.PolicyRule{APIGroups: []string{"folders.trimtab.dev"}, Resources: []string{"folders"}, Verbs: []string{"*"}})
	merge := func(c client.Client, body string) error {
		return c.Patch(t.Context(), ours, client.RawPatch(types.MergePatchType, []byte(body)))
	}
	forged := fmt.Sprintf(`{"metadata":{"annotations":{%q:"x"}}}`, api.AnnotationExternal)
	w.enforced(user, ours, forged)
	for what, body := range map[string]string{"changes": forged, "removes": strings.Replace(forged, `"x"`, "null", 1)} {
		if err := merge(user, body); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "only the operator may add, change or remove it") {
			t.Errorf("a user %s the record: %v", what, err)
		}
	}
	bare := &v1.Folder{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "paused", Annotations: map[string]string{api.AnnotationAccess: "none"}}}
	w.do(user.Create(t.Context(), bare))
	if err := user.Patch(t.Context(), bare, client.RawPatch(types.MergePatchType, []byte(forged))); !apierrors.IsForbidden(err) {
		t.Errorf("a user adds a record: %v", err)
	}
	if err := merge(user, `{"metadata":{"annotations":{"team":"shop"}},"spec":{"readOnly":true}}`); err != nil {
		t.Errorf("a user changes something else: %v", err)
	}
	w.ready(ours)
	trusted := w.as("mends-records", rbacv1.PolicyRule{APIGroups: []string{"folders.trimtab.dev"}, Resources: []string{"folders"}, Verbs: []string{"*"}},
		rbacv1.PolicyRule{APIGroups: []string{"trimtab.dev"}, Resources: []string{"records"}, Verbs: []string{"update"}})
	if err := merge(trusted, fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, api.AnnotationExternal)); err != nil {
		t.Errorf("who may write records: %v", err)
	}
}

// enforced waits until the API server has taken in the policy that was installed a moment ago.
func (w *tenants) enforced(user client.Client, f *v1.Folder, body string) {
	w.t.Helper()
	deadline, tick := time.After(20*time.Second), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for {
		if err := user.Patch(w.t.Context(), f.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(body)), client.DryRunAll); err != nil {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			w.t.Fatal("the policy is not enforced within 20 s")
		}
	}
}

// as makes a user of the whole cluster who may do what rules say.
func (w *tenants) as(name string, rules ...rbacv1.PolicyRule) client.Client {
	w.t.Helper()
	name += "-" + w.namespace
	testenv.Install(w.t, w.cfg,
		&rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}, ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules},
		&rbacv1.ClusterRoleBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding"}, ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}},
		})
	cfg := rest.CopyConfig(w.cfg)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: name}
	return testenv.Client(w.t, cfg, v1.AddToScheme)
}
