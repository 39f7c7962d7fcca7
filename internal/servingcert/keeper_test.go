package servingcert_test

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/internal/servingcert"
	"github.com/trimtab-dev/trimtab/testenv"
)

func TestMain(m *testing.M) {
	logf.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// clock is a clock that tests set.
type clock struct{ now atomic.Pointer[time.Time] }

func (c *clock) set(t time.Time) { c.now.Store(&t) }
func (c *clock) Now() time.Time  { return *c.now.Load() }

// bench is a webhook of ConfigMaps in one namespace.
type bench struct {
	client    client.WithWatch
	namespace string
	options   servingcert.Options
	served    atomic.Pointer[servingcert.Keeper] // whose certificate is served
	calls     atomic.Int64
}

func newBench(t *testing.T, now func() time.Time) *bench {
	t.Helper()
	cfg := testenv.Start(t)
	b := &bench{client: testenv.Client(t, cfg), namespace: testenv.Namespace(t, cfg)}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	handler := admission.WithValidator[*corev1.ConfigMap](clientScheme(t), counting{&b.calls})
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	srv.SetKeepAlivesEnabled(false) // every call verifies the certificate
	go func() {
		_ = srv.Serve(tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
			return b.served.Load().GetCertificate(h)
		}}))
	}()
	t.Cleanup(func() { _ = srv.Close() })
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: b.namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:         "validate.configmaps.core",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: b.namespace, Name: "none", Path: new("/"), Port: new(int32(443))}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: b.namespace}},
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
	b.options = servingcert.Options{
		Client: b.client, Secret: types.NamespacedName{Namespace: b.namespace, Name: "cert"}, Hosts: []string{"127.0.0.1"},
		Configurations: []client.Object{c}, URL: "https://" + l.Addr().String(), Now: now,
	}
	t.Cleanup(func() { _ = b.client.Delete(context.WithoutCancel(t.Context()), c) })
	return b
}

// counting counts what it validates.
type counting struct{ calls *atomic.Int64 }

func (c counting) ValidateCreate(context.Context, *corev1.ConfigMap) (admission.Warnings, error) {
	c.calls.Add(1)
	return nil, nil
}

func (counting) ValidateUpdate(context.Context, *corev1.ConfigMap, *corev1.ConfigMap) (admission.Warnings, error) {
	return nil, nil
}

func (counting) ValidateDelete(context.Context, *corev1.ConfigMap) (admission.Warnings, error) {
	return nil, nil
}

func pemOf(c *tls.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}))
}

func clientScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := corev1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return s
}

func (b *bench) keeper(t *testing.T) *servingcert.Keeper {
	t.Helper()
	k := servingcert.New(b.options)
	if err := k.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	return k
}

func (b *bench) secret(t *testing.T) *corev1.Secret {
	t.Helper()
	s := &corev1.Secret{}
	if err := b.client.Get(t.Context(), b.options.Secret, s); err != nil {
		t.Fatal(err)
	}
	return s
}

// create creates a ConfigMap, which the API server asks the webhook about.
func (b *bench) create(t *testing.T) error {
	t.Helper()
	return b.client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, GenerateName: "a-"}})
}

// trusted waits until the API server calls the webhook with success.
func (b *bench) trusted(t *testing.T) {
	t.Helper()
	before := b.calls.Load()
	if !poll.Until(func() bool { return b.create(t) == nil && b.calls.Load() > before }) {
		t.Fatal("the API server does not call the webhook")
	}
}

// TestReplicas: replicas that start at the same time have one certificate, and so has a process that starts later.
func TestReplicas(t *testing.T) {
	t.Parallel()
	b := newBench(t, time.Now)
	var keepers [5]*servingcert.Keeper
	var starting sync.WaitGroup
	for i := range keepers {
		keepers[i] = servingcert.New(b.options)
		if err := keepers[i].Check(nil); err == nil {
			t.Error("ready without a certificate")
		}
		starting.Go(func() {
			for err := keepers[i].Step(t.Context()); err != nil; err = keepers[i].Step(t.Context()) {
				if t.Context().Err() != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	starting.Wait()
	want := string(b.secret(t).Data["tls.crt"])
	for i, k := range append(keepers[:], b.keeper(t)) {
		c, err := k.GetCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := pemOf(c); got != want {
			t.Errorf("replica %d has a certificate of its own", i)
		}
		if err := k.Check(nil); err != nil {
			t.Error(err)
		}
		b.served.Store(k)
		b.trusted(t)
	}
	before := b.secret(t).ResourceVersion
	b.keeper(t)
	if after := b.secret(t).ResourceVersion; after != before {
		t.Error("a restart writes the Secret")
	}
}

// TestRotation: while the certificate is replaced, the API server can call a replica that knows of it and one that does not.
func TestRotation(t *testing.T) {
	t.Parallel()
	start := time.Now().Add(-61 * 24 * time.Hour)
	c := &clock{}
	c.set(start)
	b := newBench(t, c.Now)
	k, behind := b.keeper(t), b.keeper(t)
	old, err := k.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	b.served.Store(k)
	b.trusted(t)
	for i := range 40 {
		c.set(start.Add(61*24*time.Hour - 2*time.Hour + time.Duration(i)*6*time.Minute))
		if err := k.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, replica := range []*servingcert.Keeper{k, behind} {
			b.served.Store(replica)
			if err := b.create(t); err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
		}
	}
	now, err := k.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	if pemOf(now) == pemOf(old) {
		t.Error("the certificate was not replaced")
	}
}

// TestUntrusted: a process is not ready while the API server cannot trust its certificate.
func TestUntrusted(t *testing.T) {
	t.Parallel()
	b := newBench(t, time.Now)
	b.options.Client = interceptor.NewClient(b.client, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.CreateOption) error {
			if _, is := obj.(*corev1.Secret); is {
				return c.Create(ctx, obj, o...)
			}
			return errors.New("forbidden")
		},
	})
	k := servingcert.New(b.options)
	if err := k.Step(t.Context()); err == nil {
		t.Error("no error")
	}
	if err := k.Check(nil); err == nil {
		t.Error("ready although no configuration trusts the certificate")
	}
}
