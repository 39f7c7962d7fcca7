package fault

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// keyring is an operator that makes an authority, which a webhook configuration is to trust, and a
// password, with which a box is locked. Its bugs are switched on by name.
type keyring struct {
	client.Client
	env   *Env
	bug   string
	fresh bool // the process has made nothing yet
}

func keyrings(bug string) func(ctrl.Manager, *Env) error {
	return func(mgr ctrl.Manager, env *Env) error {
		return ctrl.NewControllerManagedBy(mgr).Named("keyring").For(&corev1.ConfigMap{}).
			Complete(&keyring{Client: mgr.GetClient(), env: env, bug: bug, fresh: true})
	}
}

func (k *keyring) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	cm := &corev1.ConfigMap{}
	if err := k.Get(ctx, req.NamespacedName, cm); err != nil || cm.Name != "a" {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if k.bug == "a password in each try" {
		return reconcile.Result{}, k.lockThenRecord(ctx, cm)
	}
	s, err := k.secret(ctx, cm)
	if err == nil {
		err = k.trust(ctx, cm, s.Data["ca.crt"])
	}
	if err == nil {
		err = k.lock(ctx, cm, string(s.Data["password"]))
	}
	return reconcile.Result{}, err
}

// secret returns the Secret, and makes it if there is none.
func (k *keyring) secret(ctx context.Context, cm *corev1.ConfigMap) (*corev1.Secret, error) {
	s := &corev1.Secret{}
	err := k.Get(ctx, client.ObjectKeyFromObject(cm), s)
	switch {
	case apierrors.IsNotFound(err):
		s.ObjectMeta = metav1.ObjectMeta{Name: cm.Name, Namespace: cm.Namespace, Labels: map[string]string{"of": cm.Name}}
		s.Data = map[string][]byte{"ca.crt": authority(), "password": []byte(rand.Text())}
		err = k.Create(ctx, s)
	case err == nil && k.fresh && k.bug == "an authority in each process":
		s.Data["ca.crt"] = authority()
		err = k.Update(ctx, s)
	}
	k.fresh = k.fresh && err != nil
	return s, err
}

func authority() []byte {
	return []byte("-----BEGIN CERTIFICATE-----\n" + rand.Text() + "\n-----END CERTIFICATE-----\n")
}

// trust has the webhook configuration trust an authority.
func (k *keyring) trust(ctx context.Context, cm *corev1.ConfigMap, ca []byte) error {
	none := admissionv1.SideEffectClassNone
	url := "https://elsewhere.example.com/"
	w := &admissionv1.ValidatingWebhookConfiguration{}
	err := k.Get(ctx, client.ObjectKey{Name: cm.Name}, w)
	if apierrors.IsNotFound(err) {
		w.ObjectMeta = metav1.ObjectMeta{Name: cm.Name, Labels: map[string]string{"of": cm.Name}}
		w.Webhooks = []admissionv1.ValidatingWebhook{{
			Name: "a.example.com", ClientConfig: admissionv1.WebhookClientConfig{URL: &url}, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
		}}
		if k.bug != "a bundle that is forgotten" {
			w.Webhooks[0].ClientConfig.CABundle = ca
		}
		if err = k.Create(ctx, w); err != nil || k.bug != "a bundle that is forgotten" {
			return err
		}
		w.Webhooks[0].ClientConfig.CABundle = ca
		return k.Update(ctx, w)
	}
	if err != nil || k.bug != "" || slices.Equal(w.Webhooks[0].ClientConfig.CABundle, ca) {
		return err
	}
	w.Webhooks[0].ClientConfig.CABundle = ca
	return k.Update(ctx, w)
}

// lock locks the box of an object, if there is none yet.
func (k *keyring) lock(ctx context.Context, cm *corev1.ConfigMap, password string) error {
	found, err := Read(ctx, k.env, "find box", func(s *shelf) (string, error) { return s.find(string(cm.UID)), nil })
	if err != nil || found != "" {
		return err
	}
	_, err = Write(ctx, k.env, "put box", func(s *shelf) (string, error) {
		return s.put("", box{string(cm.UID), fmt.Sprintf("locked by admin:%s@box", password)}), nil
	})
	return err
}

// lockThenRecord makes a password, locks the box if there is none, and records the password.
func (k *keyring) lockThenRecord(ctx context.Context, cm *corev1.ConfigMap) error {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: cm.Name, Namespace: cm.Namespace, Labels: map[string]string{"of": cm.Name}}}
	err := k.Get(ctx, client.ObjectKeyFromObject(s), s)
	if !apierrors.IsNotFound(err) {
		return err
	}
	s.Data = map[string][]byte{"password": []byte(rand.Text())}
	if err := k.lock(ctx, cm, string(s.Data["password"])); err != nil {
		return err
	}
	return k.Create(ctx, s)
}

// TestRandomValues proves that random values which are equal in the undisturbed runs, or one of them a part of the other, must be
// so in all runs, and that they must be there.
func TestRandomValues(t *testing.T) {
	for bug, want := range map[string]string{
		"":                             "",
		"an authority in each process": "webhooks[0].clientConfig.caBundle of ValidatingWebhookConfiguration a differs from data.ca.crt of Secret default/a, without the disturbance they are equal",
		"a bundle that is forgotten":   "webhooks[0].clientConfig.caBundle of ValidatingWebhookConfiguration a is missing, without the disturbance it has a random value",
		"a password in each try":       "state of external box id(box of configmaps default/a) does not contain data.password of Secret default/a, without the disturbance it does",
	} {
		t.Run(bug, func(t *testing.T) {
			r := Explore(t, Scenario{
				Name: "keyring", Operator: Operator{SetUp: keyrings(bug)}, ExternalAPI: newShelf, Races: []Step{},
				Steps: []Step{Create(configMap("a")), Merge(configMap("a"), `{"data":{"x":"y"}}`)},
			}, Only(Crashes, Faults, Stale), Waive(I4, "nothing is deleted here"), Waive(I5, "an authority in each process is what is wrong"))
			if len(r.Masked) == 0 {
				t.Fatal("nothing is masked")
			}
			found := slices.ContainsFunc(r.Findings, func(f Finding) bool {
				return f.Violations[0].Invariant == I1 && strings.Contains(f.Violations[0].Message, want)
			})
			switch {
			case want == "" && len(r.Findings) > 0:
				t.Error(strings.Join(r.texts(), "\n"))
			case want != "" && !found:
				t.Errorf("got %d findings, want one that says %q\n%s", len(r.Findings), want, strings.Join(r.texts(), "\n"))
			}
		})
	}
}
