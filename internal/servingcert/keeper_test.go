package servingcert_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
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
			if err := keepers[i].Step(t.Context()); err != nil {
				t.Error(err)
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

// inMemory returns the options of keepers of one webhook whose cluster is in memory, with the configuration applied.
func inMemory(t *testing.T) servingcert.Options {
	t.Helper()
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{
		{Name: "validate.configmaps.core", ClientConfig: admissionregistrationv1.WebhookClientConfig{
			Service: &admissionregistrationv1.ServiceReference{Namespace: "n", Name: "none", Path: new("/"), Port: new(int32(443))},
		}},
	}}
	return servingcert.Options{
		Client: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(c.DeepCopy()).Build(),
		Secret: types.NamespacedName{Namespace: "n", Name: "cert"}, Hosts: []string{"127.0.0.1"}, Configurations: []client.Object{c},
	}
}

// to returns how the API server calls the webhook.
func to(t *testing.T, o servingcert.Options) *admissionregistrationv1.ValidatingWebhookConfiguration {
	t.Helper()
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := o.Client.Get(t.Context(), types.NamespacedName{Name: "a"}, c); err != nil {
		t.Fatal(err)
	}
	return c
}

// trusted fails the test if the API server does not trust the certificate that a keeper serves.
func trusted(t *testing.T, o servingcert.Options, k *servingcert.Keeper) {
	t.Helper()
	pair, err := k.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(to(t, o).Webhooks[0].ClientConfig.CABundle)
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "127.0.0.1", CurrentTime: pair.Leaf.NotBefore}); err != nil {
		t.Errorf("the API server refuses the certificate: %v", err)
	}
}

// TestLost: when somebody takes away what makes the API server trust the certificate, it is there again at once, in all replicas.
func TestLost(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*testing.T, servingcert.Options) error{
		"the bundle": func(t *testing.T, o servingcert.Options) error {
			t.Helper()
			c := to(t, o)
			c.Webhooks[0].ClientConfig.CABundle = nil
			return o.Client.Update(t.Context(), c)
		},
		"the Secret": func(t *testing.T, o servingcert.Options) error {
			t.Helper()
			return o.Client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "cert"}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := inMemory(t)
				replicas := []*servingcert.Keeper{servingcert.New(o), servingcert.New(o)}
				ctx, stop := context.WithCancel(t.Context())
				var running sync.WaitGroup
				defer running.Wait()
				defer stop()
				for _, k := range replicas {
					running.Go(func() {
						k.Run(ctx, func(_ time.Time, err error) {
							if err != nil {
								t.Error(err)
							}
						})
					})
				}
				for range 3 {
					<-time.After(time.Minute)
					for _, k := range replicas {
						trusted(t, o, k)
					}
					if err := lose(t, o); err != nil {
						t.Fatal(err)
					}
					<-time.After(3 * time.Second)
					for _, k := range replicas {
						trusted(t, o, k)
					}
				}
			})
		})
	}
}

// TestBehind: a replica that has read an older certificate does not replace the bundle of a newer one.
func TestBehind(t *testing.T) {
	t.Parallel()
	o, c := inMemory(t), &clock{}
	c.set(time.Now())
	o.Now = c.Now
	if err := servingcert.New(o).Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	lost := to(t, o)
	lost.Webhooks[0].ClientConfig.CABundle = nil
	if err := o.Client.Update(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	slow := o
	var once sync.Once
	slow.Client = interceptor.NewClient(o.Client, interceptor.Funcs{
		Patch: func(ctx context.Context, to client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			once.Do(func() { // another replica prepares a new certificate first
				c.set(c.Now().Add(61 * 24 * time.Hour))
				if err := servingcert.New(o).Step(ctx); err != nil {
					t.Error(err)
				}
			})
			return to.Patch(ctx, obj, p, opts...)
		},
	})
	if err := servingcert.New(slow).Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := &corev1.Secret{}
	if err := o.Client.Get(t.Context(), o.Secret, s); err != nil {
		t.Fatal(err)
	}
	if len(s.Data["next.crt"]) == 0 || string(to(t, o).Webhooks[0].ClientConfig.CABundle) != string(s.Data["ca.crt"]) {
		t.Error("the configuration does not trust the newest authority")
	}
}

// TestBackInCluster: an operator in the cluster is called again after one that a developer ran outside.
func TestBackInCluster(t *testing.T) {
	t.Parallel()
	in := inMemory(t)
	outside := in
	outside.URL = "https://127.0.0.1:9443"
	if err := servingcert.New(outside).Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c := to(t, in).Webhooks[0].ClientConfig; c.Service != nil || c.URL == nil || *c.URL != "https://127.0.0.1:9443/" {
		t.Errorf("outside the cluster, the API server calls %v", c)
	}
	k := servingcert.New(in)
	if err := k.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c := to(t, in).Webhooks[0].ClientConfig; c.URL != nil || c.Service == nil || c.Service.Name != "none" {
		t.Errorf("in the cluster, the API server calls %v", c)
	}
	trusted(t, in, k)
}

// TestExpired: a process is not ready when its certificate has expired, and says why there is no other.
func TestExpired(t *testing.T) {
	t.Parallel()
	o, c := inMemory(t), &clock{}
	c.set(time.Now())
	o.Now = c.Now
	away := false
	o.Client = interceptor.NewClient(o.Client, interceptor.Funcs{
		Get: func(ctx context.Context, to client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if away {
				return errors.New("no route to host")
			}
			return to.Get(ctx, key, obj, opts...)
		},
	})
	k := servingcert.New(o)
	if err := k.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	away = true
	if err := k.Step(t.Context()); err == nil {
		t.Error("no error")
	}
	if err := k.Check(nil); err != nil {
		t.Errorf("not ready although the certificate lasts: %v", err)
	}
	c.set(c.Now().Add(91 * 24 * time.Hour))
	if err := k.Check(nil); err == nil || !strings.Contains(err.Error(), "expired") || !strings.Contains(err.Error(), "no route to host") {
		t.Errorf("readiness %v", err)
	}
}

// TestRefusals: what the API server refuses for a day is asked for ever more rarely, but at least once in two minutes.
func TestRefusals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		requests, refused := 0, errors.New("forbidden")
		var mu sync.Mutex
		count := func() error {
			mu.Lock()
			defer mu.Unlock()
			requests++
			return refused
		}
		c := interceptor.NewClient(fake.NewFakeClient(), interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return count()
			},
			Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
				return nil, count()
			},
		})
		k := servingcert.New(servingcert.Options{
			Client: c, Secret: types.NamespacedName{Namespace: "n", Name: "cert"}, Hosts: []string{"127.0.0.1"},
			Configurations: []client.Object{&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "a"}}},
		})
		ctx, stop := context.WithTimeout(t.Context(), 24*time.Hour)
		defer stop()
		k.Run(ctx, func(time.Time, error) {})
		if most, least := 3*24*61, 24*30; requests > most || requests < least {
			t.Errorf("%d requests in a day, want %d to %d", requests, least, most)
		}
	})
}

// TestOtherVersion: a process is not ready while the API server is not told of one of its webhooks, and serves the others.
func TestOtherVersion(t *testing.T) {
	t.Parallel()
	b := newBench(t, time.Now)
	old := b.keeper(t)
	b.served.Store(old)
	b.trusted(t)
	newer := b.options.Configurations[0].DeepCopyObject().(*admissionregistrationv1.ValidatingWebhookConfiguration)
	another := newer.Webhooks[0].DeepCopy()
	another.Name = "validate.secrets.core"
	newer.Webhooks = append(newer.Webhooks, *another)
	b.options.Configurations = []client.Object{newer}
	k := servingcert.New(b.options)
	if err := k.Step(t.Context()); err == nil || !strings.Contains(err.Error(), "webhook validate.secrets.core is never called") {
		t.Errorf("got %v", err)
	}
	if k.Check(nil) == nil {
		t.Error("ready although a webhook is never called")
	}
	b.served.Store(k)
	b.trusted(t)
	if err := old.Step(t.Context()); err != nil || old.Check(nil) != nil {
		t.Errorf("the older version is disturbed: %v, %v", err, old.Check(nil))
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
