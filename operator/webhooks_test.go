package operator_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/operator/operatortest"
	"github.com/trimtab-dev/trimtab/testenv"
	"github.com/trimtab-dev/trimtab/webhook"
)

// sizes are what a Probe may have.
type sizes struct{}

func (sizes) Default(_ context.Context, obj *probe.Probe) error {
	if obj.Spec.Size == 0 {
		obj.Spec.Size = 3
	}
	return nil
}

func (sizes) Validate(_ context.Context, old, obj *probe.Probe) (admission.Warnings, error) {
	switch {
	case obj.Spec.Size > 100:
		return nil, fmt.Errorf("spec.size is %d; use at most 100", obj.Spec.Size)
	case old != nil && obj.Spec.Size < old.Spec.Size:
		return admission.Warnings{"a smaller Probe loses what it holds"}, nil
	}
	return nil, nil
}

func sizedOperator() operator.Options {
	o := probeOperator()
	o.Webhooks = []*webhook.Webhook{webhook.New(webhook.Options[*probe.Probe]{Defaulter: sizes{}, Validator: sizes{}})}
	return o
}

// heard are the warnings of the API server.
type heard struct {
	mu  sync.Mutex
	all []string
}

func (h *heard) HandleWarningHeader(_ int, _, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, text)
}

// TestWebhooks: an operator outside the cluster, with the permissions of its manifests, has the API server call it.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	op := operatortest.Run(t, sizedOperator())
	warned := &heard{}
	cfg := rest.CopyConfig(op.Config)
	cfg.WarningHandler = warned
	c := testenv.Client(t, cfg, probe.AddToScheme)
	in := installed{namespace: op.Namespace, client: c}

	// The API server learns of the certificate a moment after it is written.
	first := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: op.Namespace, Name: "first"}}
	var err error
	if !poll.Until(func() bool { err = c.Create(t.Context(), first.DeepCopy()); return err == nil }) {
		t.Fatal(err)
	}
	p := in.probe(t, "defaulted")
	if p.Spec.Size != 3 {
		t.Errorf("size %d, want the default", p.Spec.Size)
	}
	before := p.DeepCopy()
	p.Spec.Size = 101
	err = c.Patch(t.Context(), p, client.MergeFrom(before))
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "spec.size is 101; use at most 100") {
		t.Errorf("an invalid update: %v", err)
	}
	before = p.DeepCopy()
	before.Spec.Size, p.Spec.Size = 3, 2
	if err := c.Patch(t.Context(), p, client.MergeFrom(before)); err != nil {
		t.Error(err)
	}
	lost := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: op.Namespace}}
	bundle := func() []byte {
		if err := op.Client.Get(t.Context(), client.ObjectKeyFromObject(lost), lost); err != nil {
			t.Fatal(err)
		}
		return lost.Webhooks[0].ClientConfig.CABundle
	}
	bundle()
	lost.Webhooks[0].ClientConfig.CABundle = nil
	if err := op.Client.Update(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	if !poll.Until(func() bool { return bundle() != nil }) {
		t.Error("the operator does not see that nobody trusts its certificate any more")
	}
	warned.mu.Lock()
	defer warned.mu.Unlock()
	if text := strings.Join(warned.all, "\n"); !strings.Contains(text, "a smaller Probe loses what it holds") {
		t.Errorf("warnings %q", text)
	}
}

// TestWebhooksRefused: webhooks that could not be served are an error before anything runs.
func TestWebhooksRefused(t *testing.T) {
	t.Parallel()
	for want, hooks := range map[string][]*webhook.Webhook{
		"number 1 of Options.Webhooks is nil; leave it out":                                                              {sizedOperator().Webhooks[0], nil},
		"two of Options.Webhooks are of Probe; give its Defaulter and its Validator to one webhook.New, for one version": append(sizedOperator().Webhooks, sizedOperator().Webhooks...),
	} {
		o := probeOperator()
		o.Webhooks = hooks
		if _, err := operator.Manifests(o, operator.ManifestOptions{Namespace: "n"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

// TestWebhooksAway: while no replica answers, nothing is created, and what is being deleted can go.
func TestWebhooksAway(t *testing.T) {
	t.Parallel()
	cfg := testenv.Start(t)
	namespace := testenv.Namespace(t, cfg)
	objects, err := operator.Manifests(sizedOperator(), operator.ManifestOptions{
		Namespace: namespace, Args: []string{"--installation=" + namespace, "--watch-namespaces=" + namespace},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := testenv.Client(t, cfg, probe.AddToScheme)
	testenv.InstallFS(t, cfg, probe.CRDs)
	p := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a", Finalizers: []string{"example.org/keep"}}}
	if err := c.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if strings.HasSuffix(o.GetObjectKind().GroupVersionKind().Kind, "WebhookConfiguration") {
			testenv.Install(t, cfg, o)
		}
	}
	other := func() error {
		return c.Create(t.Context(), &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "b-"}}, client.DryRunAll)
	}
	if !poll.Until(func() bool { return other() != nil }) {
		t.Error("an object is created without its webhooks")
	}
	status := p.DeepCopy()
	p.Status.Note = "still works"
	if err := c.Status().Patch(t.Context(), p, client.MergeFrom(status)); err != nil {
		t.Errorf("the status cannot be written: %v", err)
	}
	annotate := func(user string) error {
		as := rest.CopyConfig(cfg)
		as.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
		before := p.DeepCopy()
		p.Annotations = map[string]string{"by": user}
		return testenv.Client(t, as, probe.AddToScheme).Patch(t.Context(), p, client.MergeFrom(before))
	}
	if err := annotate("system:serviceaccount:" + namespace + ":" + namespace); err != nil {
		t.Errorf("the operator cannot write annotations: %v", err)
	}
	if err := annotate("system:serviceaccount:" + namespace + ":other"); err == nil {
		t.Error("others update objects without their webhooks")
	}
	if err := c.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		t.Fatal(err)
	}
	before := p.DeepCopy()
	p.Finalizers = nil
	if err := c.Patch(t.Context(), p, client.MergeFrom(before)); err != nil {
		t.Errorf("the deletion cannot be finished: %v", err)
	}
}

// TestWebhookManifests: with certificates of somebody else, the operator may change no configuration.
func TestWebhookManifests(t *testing.T) {
	t.Parallel()
	printed := func(args ...string) string {
		got := runArgs(t, sizedOperator(), append([]string{"manifests", "--"}, args...)...)
		if got.Code != 0 {
			t.Fatal(got.ErrOut)
		}
		return got.Out
	}
	own, foreign := printed(), printed("--webhook-cert-dir=/certs")
	for _, want := range []string{"kind: Service\n", "containerPort: 9443", "kind: MutatingWebhookConfiguration", "kind: ValidatingWebhookConfiguration"} {
		if !strings.Contains(own, want) || !strings.Contains(foreign, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if rule := "- validatingwebhookconfigurations\n"; !strings.Contains(own, rule) || strings.Contains(foreign, rule) {
		t.Errorf("permissions on configurations: %t and %t with a mounted certificate", strings.Contains(own, rule), strings.Contains(foreign, rule))
	}
	if !strings.Contains(foreign, "mountPath: /certs") {
		t.Error("the certificate is not mounted")
	}
}
