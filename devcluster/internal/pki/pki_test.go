package pki_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/devcluster/internal/pki"
)

func TestEnsureKeepsWhatItMade(t *testing.T) {
	dir := t.TempDir()
	ensure(t, dir)
	first := contents(t, dir)
	ensure(t, dir)
	if diff := cmp.Diff(first, contents(t, dir)); diff != "" {
		t.Errorf("a second start changed the certificates (-want +got):\n%s", diff)
	}
	for name := range first {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != 0o600 {
			t.Errorf("%s has mode %v, want 0600", name, got)
		}
	}
}

func TestEnsureContinuesAfterACrash(t *testing.T) {
	dir := t.TempDir()
	d := ensure(t, dir)
	kept := contents(t, dir)["ca.crt"]
	// The key is there and its certificate is not yet.
	if err := os.Remove(d.Cert(pki.Admin)); err != nil {
		t.Fatal(err)
	}
	ensure(t, dir)
	if _, err := tls.LoadX509KeyPair(d.Cert(pki.Admin), d.Key(pki.Admin)); err != nil {
		t.Errorf("the admin's pair was not completed: %v", err)
	}
	if contents(t, dir)["ca.crt"] != kept {
		t.Error("the authority changed, every kubeconfig out there is void")
	}
}

func TestEnsureRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		why    string
		damage func(t *testing.T, d pki.Dir)
		now    time.Time
		says   string
	}{
		"garbage in a certificate": {
			why:    "it would show up as a TLS error in a client",
			damage: func(t *testing.T, d pki.Dir) { write(t, d.Cert(pki.APIServer), "garbage") },
			says:   "certificate of kube-apiserver",
		},
		"garbage in the token key": {
			why:    "every ServiceAccount token would be void",
			damage: func(t *testing.T, d pki.Dir) { write(t, d.Key(pki.ServiceAccounts), "garbage") },
			says:   "key for ServiceAccount tokens",
		},
		"authority of another cluster": {
			why: "the parts would not trust each other",
			damage: func(t *testing.T, d pki.Dir) {
				other := ensure(t, t.TempDir())
				copyFile(t, other.Cert(pki.CA), d.Cert(pki.CA))
				copyFile(t, other.Key(pki.CA), d.Key(pki.CA))
			},
			says: "does not match",
		},
		"expired": {
			why:    "the handshake error does not name the file",
			damage: func(*testing.T, pki.Dir) {},
			now:    time.Now().AddDate(11, 0, 0),
			says:   "expired",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			tc.damage(t, ensure(t, dir))
			now := tc.now
			if now.IsZero() {
				now = time.Now()
			}
			_, err := pki.Ensure(dir, now)
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error = %v, want one that says %q; %s", err, tc.says, tc.why)
			}
		})
	}
}

func TestCertificatesServeTheirPurpose(t *testing.T) {
	d := ensure(t, t.TempDir())
	server := leaf(t, d, pki.APIServer)
	for _, host := range []string{"127.0.0.1", "localhost", "::1", "kubernetes.default.svc"} {
		opts := x509.VerifyOptions{Roots: pool(t, d, pki.CA), DNSName: host}
		if net.ParseIP(host) != nil {
			opts.DNSName = "[" + host + "]"
		}
		if _, err := server.Verify(opts); err != nil {
			t.Errorf("the server's certificate for %s: %v", host, err)
		}
	}
	client := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	for name, authority := range map[string]string{
		pki.Admin: pki.CA, pki.Controllers: pki.CA, pki.Scheduler: pki.CA, pki.Nodes: pki.CA, pki.FrontProxy: pki.FrontProxyCA,
	} {
		if _, err := leaf(t, d, name).Verify(x509.VerifyOptions{Roots: pool(t, d, authority), KeyUsages: client}); err != nil {
			t.Errorf("%s as a client: %v", name, err)
		}
	}
	if _, err := leaf(t, d, pki.FrontProxy).Verify(x509.VerifyOptions{Roots: pool(t, d, pki.CA), KeyUsages: client}); err == nil {
		t.Error("the authority for users vouches for the front proxy, so any user could claim to be another")
	}
}

func ensure(t *testing.T, dir string) pki.Dir {
	t.Helper()
	d, err := pki.Ensure(dir, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func leaf(t *testing.T, d pki.Dir, name string) *x509.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(d.Cert(name), d.Key(name))
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

func pool(t *testing.T, d pki.Dir, name string) *x509.CertPool {
	t.Helper()
	p := x509.NewCertPool()
	p.AddCert(leaf(t, d, name))
	return p
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(b)
	}
	return out
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	write(t, to, string(b))
}
