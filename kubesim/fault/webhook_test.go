package fault

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// toyWebhooks are a toy's, with functions for what a test is about. Nil functions are not registered.
type toyWebhooks struct {
	client.Client
	fill  func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) error
	check func(ctx context.Context, c client.Client, old, cm *corev1.ConfigMap) error
}

func (w *toyWebhooks) Default(ctx context.Context, cm *corev1.ConfigMap) error {
	return w.fill(ctx, w.Client, cm)
}

func (w *toyWebhooks) ValidateCreate(ctx context.Context, cm *corev1.ConfigMap) (admission.Warnings, error) {
	return nil, w.check(ctx, w.Client, nil, cm)
}

func (w *toyWebhooks) ValidateUpdate(ctx context.Context, old, cm *corev1.ConfigMap) (admission.Warnings, error) {
	return nil, w.check(ctx, w.Client, old, cm)
}

func (w *toyWebhooks) ValidateDelete(ctx context.Context, cm *corev1.ConfigMap) (admission.Warnings, error) {
	return nil, w.check(ctx, w.Client, cm, nil)
}

// withWebhooks lets the operator of a scenario register webhooks for ConfigMaps.
func withWebhooks(s Scenario, w toyWebhooks) Scenario {
	toy := s.Operator.SetUp
	s.Operator.SetUp = func(mgr ctrl.Manager, env *Env) error {
		mine := w
		mine.Client = mgr.GetClient()
		b := ctrl.NewWebhookManagedBy(mgr, &corev1.ConfigMap{})
		if w.fill != nil {
			b = b.WithDefaulter(&mine)
		}
		if w.check != nil {
			b = b.WithValidator(&mine)
		}
		return errors.Join(b.Complete(), toy(mgr, env))
	}
	return s
}

// note returns the note of a report that begins with a text.
func note(t *testing.T, r Report, prefix string) string {
	t.Helper()
	i := slices.IndexFunc(r.Notes, func(n string) bool { return strings.HasPrefix(n, prefix) })
	if i < 0 {
		t.Fatalf("no note begins with %q: %q", prefix, r.Notes)
	}
	return r.Notes[i]
}

// A validator that is registered under the usual path is called, without certificates, and what it denies is an
// ordinary error.
func TestValidator(t *testing.T) {
	s := toyLife("")
	s.Steps = append([]Step{{Name: "a wrong size", Do: func(ctx context.Context, w *World) error {
		wrong := configMap("a")
		wrong.Namespace, wrong.Data = "default", map[string]string{"size": "huge"}
		if err := w.Client.Create(ctx, wrong); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "no such size") {
			return fmt.Errorf("created with the error %w", err)
		}
		return nil
	}}}, s.Steps...)
	s = withWebhooks(s, toyWebhooks{check: func(_ context.Context, _ client.Client, _, cm *corev1.ConfigMap) error {
		if cm.Data["size"] == "huge" {
			return errors.New("no such size")
		}
		return nil
	}})
	r := Explore(t, s, Only(Crashes))
	for _, text := range r.texts() {
		t.Error(text)
	}
	t.Log(r)
	if got := note(t, r, "the operator's webhooks were called"); !strings.Contains(got, "/validate--v1-configmap") || !strings.Contains(got, "of which it denied 1") {
		t.Error(got)
	}
	note(t, r, "no webhook configuration is among the operator's manifests")
}

// TestUnusedWebhook proves that a note names what is registered and never called.
func TestUnusedWebhook(t *testing.T) {
	s := toyLife("")
	toy := s.Operator.SetUp
	s.Operator.SetUp = func(mgr ctrl.Manager, env *Env) error {
		mgr.GetWebhookServer().Register("/validate-toys", http.NotFoundHandler())
		if err := mgr.AddReadyzCheck("webhook", mgr.GetWebhookServer().StartedChecker()); err != nil {
			return err
		}
		return toy(mgr, env)
	}
	r := Explore(t, s, Only(Crashes))
	for _, text := range r.texts() {
		t.Error(text)
	}
	note(t, r, "the operator registered webhooks that were never called (/validate-toys)")
}

const toyManifest = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: validating-webhook-configuration}
webhooks:
- name: vconfigmap.kb.io
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig:
    caBundle: Cg==
    service: {name: webhook-service, namespace: system, path: /validate--v1-configmap}
  failurePolicy: POLICY
  objectSelector: {matchExpressions: [{key: unchecked, operator: DoesNotExist}]}
  matchConditions: [{name: small, expression: "request.operation == 'DELETE' || object.metadata.name != 'kube-root-ca.crt'"}]
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE, DELETE], resources: [configmaps]}]
`

func toyConfiguration(policy string) string { return strings.ReplaceAll(toyManifest, "POLICY", policy) }

// undeletable refuses to let go of an object.
func undeletable(_ context.Context, _ client.Client, _, cm *corev1.ConfigMap) error {
	if cm != nil && cm.DeletionTimestamp != nil {
		return errors.New("it may not be changed any more")
	}
	return nil
}

// A validator that refuses the write that removes a finalizer keeps an object for ever.
func TestValidatorKeepsFinalizer(t *testing.T) {
	s := withWebhooks(toyLife(""), toyWebhooks{check: undeletable})
	_, err := explored(t, s, time.Minute, Crashes)
	if err == nil || !strings.Contains(err.Error(), "a still exists; its finalizers: toy.dev/box") || !strings.Contains(err.Error(), "it may not be changed any more") {
		t.Errorf("explored with %v", err)
	}
	s.Steps[2].Expect = nil
	r, err := explored(t, s, time.Minute, Crashes)
	if err != nil || len(r.Findings) == 0 || r.Findings[0].Violations[0].Invariant != I6 {
		t.Errorf("%v, %v; want a finding of I6 first, got %q", r, err, r.texts())
	}
}

// What the operator needs is filled in before it sees the object, and a defaulter that goes on filling in is found.
func TestDefaulter(t *testing.T) {
	s := toyLife("")
	bare := configMap("a")
	s.Steps[0] = Create(bare).Expecting(func(_ context.Context, w *World) error {
		if b := w.ExternalAPI.(*shelf).boxes["box-1"]; b.size != "1" {
			return fmt.Errorf("the box is %v", b)
		}
		return nil
	})
	fill := func(_ context.Context, _ client.Client, cm *corev1.ConfigMap) error {
		if cm.Data["size"] == "" {
			cm.Data = map[string]string{"size": "1"}
		}
		return nil
	}
	r := Explore(t, withWebhooks(s, toyWebhooks{fill: fill}), Only(Crashes, Faults))
	for _, text := range r.texts() {
		t.Error(text)
	}
	t.Log(r)

	r = Explore(t, withWebhooks(toyLife(""), toyWebhooks{fill: func(_ context.Context, _ client.Client, cm *corev1.ConfigMap) error {
		if cm.Data != nil {
			cm.Data["writes"] += "x"
		}
		return nil
	}}), Only(Crashes, Faults))
	t.Log(r, r.texts())
}

// A defaulter that undoes what the operator writes makes it write for ever.
func TestDefaulterUndoes(t *testing.T) {
	s := Scenario{Name: "undone", Steps: []Step{Create(configMap("a"))}, Shared: []string{"configmaps"}}
	s.Operator.SetUp = func(mgr ctrl.Manager, _ *Env) error {
		c := mgr.GetClient()
		return ctrl.NewControllerManagedBy(mgr).Named("modes").For(&corev1.ConfigMap{}).Complete(
			reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				cm := &corev1.ConfigMap{}
				if err := c.Get(ctx, req.NamespacedName, cm); err != nil || cm.Name != "a" {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				again := reconcile.Result{RequeueAfter: 2 * time.Minute}
				if cm.Data["mode"] == "fast" {
					return again, nil
				}
				cm.Data = map[string]string{"mode": "fast"}
				return again, c.Update(ctx, cm)
			}))
	}
	fill := toyWebhooks{fill: func(_ context.Context, _ client.Client, cm *corev1.ConfigMap) error {
		if cm.Name == "a" {
			cm.Data = map[string]string{"mode": "FAST"}
		}
		return nil
	}}
	for _, c := range []struct {
		why  string
		s    Scenario
		want []string
	}{
		{"nothing undoes what it writes", s, nil},
		{"the defaulter does", withWebhooks(s, fill), []string{"I5"}},
	} {
		r := Explore(t, c.s, Only(Crashes))
		var got []string
		for _, f := range r.Findings {
			for _, v := range f.Violations {
				got = append(got, string(v.Invariant))
			}
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: findings (-want +got):\n%s\n%s", c.why, d, r.texts())
		}
	}
}

// Webhooks that read through the cache and write do so as part of the request, whoever makes it.
func TestWebhooksRead(t *testing.T) {
	s := toyLife("")
	s.Operator.Webhooks = Manifests(toyConfiguration("Fail"))
	s = withWebhooks(s, toyWebhooks{check: func(ctx context.Context, c client.Client, _, _ *corev1.ConfigMap) error {
		secrets := &corev1.SecretList{} // for which there is no cache yet
		seen := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "seen"}}
		return errors.Join(c.List(ctx, secrets), c.List(ctx, &corev1.ConfigMapList{}), client.IgnoreAlreadyExists(c.Create(ctx, seen)))
	}})
	r := Explore(t, s)
	for _, text := range r.texts() {
		t.Error(text)
	}
	if got := note(t, r, "the operator's webhooks were called"); !strings.Contains(got, "/validate--v1-configmap") {
		t.Error(got)
	}
	if r.Writes != 7 {
		t.Errorf("%d writes that are disturbed, want the operator's 7 without those of the webhook", r.Writes)
	}
	if again := Explore(t, s, AtMost(1)); again.Trace != r.Trace {
		t.Error("two undisturbed runs differ")
	}
}

// While no process serves, requests fail, or not, as the failure policy says. Users try again.
func TestWebhooksAreDown(t *testing.T) {
	early := func(s Scenario) Scenario {
		toy := s.Operator.SetUp
		s.Operator.SetUp = func(mgr ctrl.Manager, env *Env) error {
			c, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
			if err == nil {
				err = c.Create(context.WithoutCancel(t.Context()), configMap("early"))
			}
			return errors.Join(client.IgnoreAlreadyExists(err), toy(mgr, env))
		}
		return s
	}
	check := toyWebhooks{check: func(context.Context, client.Client, *corev1.ConfigMap, *corev1.ConfigMap) error { return nil }}
	s := withWebhooks(early(toyLife("")), check)
	s.Operator.Webhooks = Manifests(toyConfiguration("Fail"))
	if _, err := explored(t, s, time.Minute, Crashes); err == nil || !strings.Contains(err.Error(), "connect: connection refused") {
		t.Errorf("explored with %v", err)
	}
	s.Operator.Webhooks = Manifests(toyConfiguration("Ignore"))
	if r, err := explored(t, s, time.Minute, Crashes); err != nil {
		t.Error(r, err)
	}

	s = withWebhooks(toyLife(""), check)
	s.Operator.Webhooks = Manifests(toyConfiguration("Fail"))
	toy := s.Operator.SetUp
	s.Operator.SetUp = func(mgr ctrl.Manager, env *Env) error {
		time.Sleep(3 * time.Minute)
		return toy(mgr, env)
	}
	r, err := explored(t, s, time.Minute, Crashes)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range r.texts() {
		t.Error(text)
	}
	if got := note(t, r, "the operator's webhooks were called"); !strings.Contains(got, "in vain, while no process of the operator served it") {
		t.Error(got)
	}
}

// What a user does at a bad moment and is denied did not happen, and whoever collects garbage tries again.
func TestRefusedOthers(t *testing.T) {
	busy := func(_ context.Context, _ client.Client, old, cm *corev1.ConfigMap) error {
		switch {
		case old == nil || cm != nil && cm.Data["size"] == old.Data["size"] || old.Annotations["toy.dev/size"] == old.Data["size"]:
			return nil
		}
		return errors.New("it is busy")
	}
	s := withWebhooks(toyLife(""), toyWebhooks{check: busy})
	s.Operator.Webhooks = Manifests(toyConfiguration("Fail"))
	r, err := explored(t, s, time.Minute, Races, Overtaken)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range r.texts() {
		t.Error(text)
	}

	owner, dependent := configMap("owner"), configMap("dependent")
	s = withWebhooks(toyLife(""), toyWebhooks{check: func(_ context.Context, _ client.Client, old, _ *corev1.ConfigMap) error {
		if old.Name == "dependent" && old.Data["free"] == "" {
			return errors.New("it is in use")
		}
		return nil
	}})
	s.Operator.Webhooks = Manifests(strings.ReplaceAll(toyConfiguration("Fail"), "CREATE, UPDATE, ", ""))
	s.Steps = []Step{
		Create(owner),
		{Name: "create dependent", Do: func(ctx context.Context, w *World) error {
			o, d := &corev1.ConfigMap{}, dependent.DeepCopy()
			if err := w.Client.Get(ctx, client.ObjectKeyFromObject(owner), o); err != nil {
				return err
			}
			d.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: o.Name, UID: o.UID}}
			return w.Client.Create(ctx, d)
		}},
		Delete(owner).Gone(owner).Expecting(func(ctx context.Context, w *World) error {
			return w.Client.Get(ctx, client.ObjectKeyFromObject(dependent), &corev1.ConfigMap{})
		}),
		Merge(dependent, `{"data":{"free":"yes"}}`).Gone(dependent),
	}
	if _, err := explored(t, s, time.Minute, Crashes); err != nil {
		t.Error(err)
	}
}

// A path that the operator does not register is let through, and a note names it.
func TestForeignWebhook(t *testing.T) {
	s := withWebhooks(toyLife(""), toyWebhooks{check: undeletable})
	s.Operator.RBAC = nil
	s.Operator.CRDs = Manifests(strings.ReplaceAll(toyConfiguration("Fail"), "/validate--v1-configmap", "/elsewhere"))
	r := Explore(t, s, Only(Crashes))
	for _, text := range r.texts() {
		t.Error(text)
	}
	note(t, r, "webhook configurations name paths that the operator did not register (/elsewhere)")
	note(t, r, "the operator registered webhooks that were never called (/validate--v1-configmap)")
}

// TestWebhooksAmongOthers proves that configurations count wherever the operator's manifests have them.
func TestWebhooksAmongOthers(t *testing.T) {
	const role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: all}\nrules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]\n---"
	for folder, in := range map[string]func(o *Operator, manifest string){
		"Webhooks": func(o *Operator, manifest string) { o.Webhooks = Manifests(manifest) },
		"RBAC":     func(o *Operator, manifest string) { o.RBAC = Manifests(role + manifest) },
		"CRDs":     func(o *Operator, manifest string) { o.CRDs = Manifests(manifest) },
	} {
		s := Scenario{Name: "among"}
		in(&s.Operator, toyConfiguration("Fail"))
		if c, err := s.cluster(); err != nil || len(c.Webhooks) != 1 {
			t.Errorf("%s has one configuration, read were %d: %v", folder, len(c.Webhooks), err)
		}
	}
}
