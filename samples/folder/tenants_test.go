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
	"github.com/trimtab-dev/trimtab/internal/poll"
	v1 "github.com/trimtab-dev/trimtab/samples/folder/api/v1"
	"github.com/trimtab-dev/trimtab/testenv"
)

// tenants is an operatorTest with two namespaces whose users do not trust each other. The kind
// cannot hold marks, so that nothing but the objects tells whose a folder is.
type tenants struct {
	*operatorTest
	evil string
}

func newTenants(t *testing.T, flags ...string) *tenants {
	t.Helper()
	evil := testenv.Namespace(t, testenv.Start(t))
	ot := newOperatorTest(t, append([]string{"--watch-namespaces", evil}, flags...)...)
	ot.start(ot.account)
	return &tenants{operatorTest: ot, evil: evil}
}

// attack makes an object of the same name in the other namespace.
func (ot *tenants) attack(annotations map[string]string) *v1.Folder {
	ot.t.Helper()
	f := &v1.Folder{ObjectMeta: metav1.ObjectMeta{Namespace: ot.evil, Name: "orders", Annotations: annotations}, Spec: v1.FolderSpec{ReadOnly: true}}
	ot.do(ot.client.Create(ot.t.Context(), f))
	return f
}

// forge gives an object a record which says that the folder is its own.
func (ot *tenants) forge(f *v1.Folder, adopted string) {
	ot.t.Helper()
	record := fmt.Sprintf(`{"id":"orders","inc":1,"uid":%q,"create":{"at":"2026-01-05T10:11:12Z","by":"forged"}%s}`, f.UID, adopted)
	ot.merge(f, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, api.AnnotationExternal, record))
}

// says waits until the object is refused with a reason, and wants a text in the message.
func (ot *tenants) says(f *v1.Folder, reason, text string) {
	ot.t.Helper()
	f = testenv.Wait(ot.t, ot.client, f, "Ready=False for "+reason, func(f *v1.Folder) bool {
		c := meta.FindStatusCondition(f.Status.Conditions, api.ConditionReady)
		return c != nil && c.Status == metav1.ConditionFalse && c.Reason == reason
	})
	if c := meta.FindStatusCondition(f.Status.Conditions, api.ConditionReady); !strings.Contains(c.Message, text) {
		ot.t.Errorf("%s says %q; want %q in it", f.Namespace, c.Message, text)
	}
}

var mine = []string{"drwxr-xr-x orders"}

func TestOneFolderOneObject(t *testing.T) {
	ot := newTenants(t, "--adoption-limit", "always")
	ours := ot.ready(ot.create(v1.FolderSpec{}))
	t.Run("whatever annotations say", func(t *testing.T) {
		theirs := ot.attack(map[string]string{api.AnnotationAdoption: "always"})
		ot.says(theirs, "NotOurs", `"orders" belongs to Folder `+ot.namespace+"/orders")
		ot.want("refused", mine...)
		ot.delete(theirs)
		ot.want("refused, and the object is gone", mine...)
	})
	t.Run("a copy with the other's record", func(t *testing.T) {
		record := ot.record(ours)
		theirs := ot.attack(map[string]string{api.AnnotationExternal: record, api.AnnotationAdoption: "always"})
		ot.says(theirs, "NotOurs", "belongs to Folder "+ot.namespace+"/orders")
		ot.delete(theirs)
		ot.want("a copy", mine...)
	})
	t.Run("a forged adoption", func(t *testing.T) {
		theirs := ot.attack(nil)
		ot.says(theirs, "NotOurs", "belongs to")
		ot.forge(theirs, `,"adopted":"unmarked"`)
		ot.reconcile(theirs, "1")
		ot.says(theirs, "NotOurs", "belongs to")
		ot.delete(theirs)
		ot.want("forged", mine...)
	})
	t.Run("a forged record", func(t *testing.T) {
		theirs := ot.attack(nil)
		ot.says(theirs, "NotOurs", "belongs to")
		ot.forge(theirs, "")
		ot.reconcile(theirs, "1")
		ot.says(theirs, "Contested", "Folder "+ot.namespace+"/orders both have a record")
		ot.merge(ours, `{"spec":{"readOnly":true}}`)
		ot.says(ours, "Contested", "deleted with annotation trimtab.dev/deletion=orphan")
		ot.want("nothing proves either", mine...)
		ot.delete(theirs)
		ot.ready(ours)
		ot.want("the other is gone", "dr-xr-xr-x orders")
	})
	t.Run("the second has it when the first leaves it", func(t *testing.T) {
		theirs := ot.attack(map[string]string{api.AnnotationAdoption: "always"})
		ot.says(theirs, "NotOurs", "belongs to")
		ot.merge(ours, `{"metadata":{"annotations":{"`+api.AnnotationDeletion+`":"orphan"}}}`)
		ot.delete(ours)
		ot.ready(theirs)
	})
}

func (ot *tenants) record(f *v1.Folder) string {
	ot.t.Helper()
	ot.do(ot.client.Get(ot.t.Context(), client.ObjectKeyFromObject(f), f))
	return f.Annotations[api.AnnotationExternal]
}

// An object that was copied under another name has a folder of its own.
func TestCopyUnderAnotherName(t *testing.T) {
	ot := newTenants(t)
	ours := ot.ready(ot.create(v1.FolderSpec{}))
	twin := &v1.Folder{ObjectMeta: metav1.ObjectMeta{Namespace: ot.namespace, Name: "copy", Annotations: map[string]string{api.AnnotationExternal: ot.record(ours)}}}
	ot.do(ot.client.Create(t.Context(), twin))
	ot.ready(twin)
	ot.want("its own", "drwxr-xr-x copy", "drwxr-xr-x orders")
	ot.delete(twin)
	ot.want("and no other", mine...)
}

// The record on a living object is the operator's alone to write.
func TestRecordsAreTheOperators(t *testing.T) {
	ot := newTenants(t)
	ours := ot.ready(ot.create(v1.FolderSpec{}))
	user := ot.as("edits-folders", rbacv1.PolicyRule{APIGroups: []string{"folders.trimtab.dev"}, Resources: []string{"folders"}, Verbs: []string{"*"}})
	merge := func(c client.Client, body string) error {
		return c.Patch(t.Context(), ours, client.RawPatch(types.MergePatchType, []byte(body)))
	}
	forged := fmt.Sprintf(`{"metadata":{"annotations":{%q:"x"}}}`, api.AnnotationExternal)
	ot.enforced(user, ours, forged)
	for what, body := range map[string]string{"changes": forged, "removes": strings.Replace(forged, `"x"`, "null", 1)} {
		if err := merge(user, body); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "only the operator may add, change or remove it") {
			t.Errorf("a user %s the record: %v", what, err)
		}
	}
	bare := &v1.Folder{ObjectMeta: metav1.ObjectMeta{Namespace: ot.namespace, Name: "paused", Annotations: map[string]string{api.AnnotationAccess: "none"}}}
	ot.do(user.Create(t.Context(), bare))
	if err := user.Patch(t.Context(), bare, client.RawPatch(types.MergePatchType, []byte(forged))); !apierrors.IsForbidden(err) {
		t.Errorf("a user adds a record: %v", err)
	}
	if err := merge(user, `{"metadata":{"annotations":{"team":"shop"}},"spec":{"readOnly":true}}`); err != nil {
		t.Errorf("a user changes something else: %v", err)
	}
	ot.ready(ours)
	trusted := ot.as("mends-records", rbacv1.PolicyRule{APIGroups: []string{"folders.trimtab.dev"}, Resources: []string{"folders"}, Verbs: []string{"*"}},
		rbacv1.PolicyRule{APIGroups: []string{"trimtab.dev"}, Resources: []string{"records"}, Verbs: []string{"update"}})
	if err := merge(trusted, fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, api.AnnotationExternal)); err != nil {
		t.Errorf("who may write records: %v", err)
	}
}

// enforced waits until the API server has taken in the policy that was installed a moment ago.
func (ot *tenants) enforced(user client.Client, f *v1.Folder, body string) {
	ot.t.Helper()
	deadline, tick := time.After(poll.Patience), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for {
		if err := user.Patch(ot.t.Context(), f.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(body)), client.DryRunAll); err != nil {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			ot.t.Fatal("the policy is not enforced")
		}
	}
}

// as makes a user of the whole cluster who may do what rules say.
func (ot *tenants) as(name string, rules ...rbacv1.PolicyRule) client.Client {
	ot.t.Helper()
	name += "-" + ot.namespace
	testenv.Install(ot.t, ot.cfg,
		&rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}, ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules},
		&rbacv1.ClusterRoleBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding"}, ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}},
		})
	cfg := rest.CopyConfig(ot.cfg)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: name}
	return testenv.Client(ot.t, cfg, v1.AddToScheme)
}
