package operator

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/internal/servingcert"
)

// TestMountedCertificate: webhooks are served with the certificate in --webhook-cert-dir, also with one that replaces it, and
// the process is not ready with one that has expired.
func TestMountedCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	issue := func(at time.Time) []byte { // puts a certificate that lasts 90 days into dir
		t.Helper()
		c, key := fake.NewFakeClient(), types.NamespacedName{Namespace: "n", Name: "cert"}
		k := servingcert.New(servingcert.Options{Client: c, Secret: key, Hosts: []string{"127.0.0.1"}, Now: func() time.Time { return at }})
		var s corev1.Secret
		if err := k.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), key, &s); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"tls.key", "tls.crt"} {
			if err := os.WriteFile(filepath.Join(dir, name), s.Data[name], 0o600); err != nil {
				t.Fatal(err)
			}
		}
		pair, err := tls.X509KeyPair(s.Data["tls.crt"], s.Data["tls.key"])
		if err != nil {
			t.Fatal(err)
		}
		return pair.Certificate[0]
	}
	p := &process{design: &design{options: Options{Name: "mounted"}}, settings: settings{webhookCertDir: dir}, health: newHealth()}
	if _, err := p.certificate(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "--webhook-cert-dir "+dir) {
		t.Errorf("without files: %v", err)
	}
	first := issue(time.Now())
	serve, err := p.certificate(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.servers.stop(t.Context())
	serves := func(der []byte) bool {
		c, err := serve(nil)
		return err == nil && string(c.Certificate[0]) == string(der)
	}
	ready := func() error { return p.health.ready["webhooks"](nil) }
	if err := ready(); err != nil || !serves(first) {
		t.Errorf("not served: %v", err)
	}
	if next := issue(time.Now()); !poll.Until(func() bool { return serves(next) }) {
		t.Error("the certificate that replaced the first is not served")
	}
	expired := issue(time.Now().Add(-91 * 24 * time.Hour))
	if !poll.Until(func() bool { return serves(expired) }) {
		t.Error("the last certificate is not served")
	}
	if err := ready(); err == nil || !strings.Contains(err.Error(), "has expired") {
		t.Errorf("readiness with an expired certificate: %v", err)
	}
}
