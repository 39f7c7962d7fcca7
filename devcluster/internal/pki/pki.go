// Package pki creates the certificates and keys of a control plane and stores
// them as PEM files in a folder, so that a kubeconfig stays valid when the control
// plane is restarted with the same folder.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/trimtab-dev/trimtab/devcluster/internal/folder"
)

// lifetime is long because nobody rotates certificates for development.
const lifetime = 10 * 365 * 24 * time.Hour

// The identities of a control plane. Each has two files, NAME.crt and NAME.key,
// except ServiceAccounts, which has only a key.
const (
	CA              = "ca"
	FrontProxyCA    = "front-proxy-ca"
	APIServer       = "kube-apiserver"
	FrontProxy      = "front-proxy-client"
	Admin           = "admin"
	Controllers     = "kube-controller-manager"
	Scheduler       = "kube-scheduler"
	Nodes           = "kwok"
	ServiceAccounts = "service-accounts"
)

// identity is the content of a certificate.
type identity struct {
	name   string
	issuer string // empty for a certificate authority, which signs itself
	cn     string
	groups []string
	dns    []string
	ips    []net.IP
}

// identities are sorted so that issuers come first.
func identities() []identity {
	return []identity{
		{name: CA, cn: "devcluster"},
		{name: FrontProxyCA, cn: "devcluster front proxy"},
		{
			name: APIServer, issuer: CA, cn: "kube-apiserver",
			dns: []string{
				"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
				"kubernetes.default.svc.cluster.local",
			},
			ips: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, net.IPv4(10, 96, 0, 1)},
		},
		{name: FrontProxy, issuer: FrontProxyCA, cn: FrontProxy},
		{name: Admin, issuer: CA, cn: "admin", groups: []string{"system:masters"}},
		{name: Controllers, issuer: CA, cn: "system:kube-controller-manager"},
		{name: Scheduler, issuer: CA, cn: "system:kube-scheduler"},
		{name: Nodes, issuer: CA, cn: "devcluster:kwok", groups: []string{"system:masters"}},
	}
}

// Dir is a folder with all certificates and keys.
type Dir string

// Cert returns the path of an identity's certificate.
func (d Dir) Cert(name string) string { return filepath.Join(string(d), name+".crt") }

// Key returns the path of an identity's private key.
func (d Dir) Key(name string) string { return filepath.Join(string(d), name+".key") }

// Ensure creates what is missing in the folder and checks what exists. It can be
// repeated, even after a crash: a certificate is written after its key, and only a
// complete pair counts.
func Ensure(path string, now time.Time) (Dir, error) {
	d := Dir(path)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return d, fmt.Errorf("create the folder for certificates: %w", err)
	}
	authorities := map[string]*tls.Certificate{}
	for _, id := range identities() {
		cert, err := d.ensure(id, authorities[id.issuer], now)
		if err != nil {
			return d, fmt.Errorf("certificate of %s: %w", id.name, err)
		}
		if id.issuer == "" {
			authorities[id.name] = cert
		}
	}
	if err := d.ensureServiceAccounts(); err != nil {
		return d, fmt.Errorf("key for ServiceAccount tokens: %w", err)
	}
	return d, nil
}

func (d Dir) ensure(id identity, issuer *tls.Certificate, now time.Time) (*tls.Certificate, error) {
	_, err := os.Stat(d.Cert(id.name))
	if errors.Is(err, fs.ErrNotExist) {
		err = d.issue(id, issuer, now)
	}
	if err != nil {
		return nil, err
	}
	return d.load(id, issuer, now)
}

// load reads an identity and checks it, so that a damaged folder is reported at
// startup and not by a TLS handshake later.
func (d Dir) load(id identity, issuer *tls.Certificate, now time.Time) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(d.Cert(id.name), d.Key(id.name))
	if err != nil {
		return nil, err
	}
	if now.After(pair.Leaf.NotAfter) {
		return nil, fmt.Errorf("%s expired at %s", d.Cert(id.name), pair.Leaf.NotAfter.Format(time.DateOnly))
	}
	if issuer != nil {
		if err := pair.Leaf.CheckSignatureFrom(issuer.Leaf); err != nil {
			return nil, fmt.Errorf("%s does not match %s: %w", d.Cert(id.name), d.Cert(id.issuer), err)
		}
	}
	return &pair, nil
}

func (d Dir) issue(id identity, issuer *tls.Certificate, now time.Time) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template, err := id.template(now)
	if err != nil {
		return err
	}
	parent, signer := template, any(key)
	if issuer != nil {
		parent, signer = issuer.Leaf, issuer.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return err
	}
	if err := writeKey(d.Key(id.name), key); err != nil {
		return err
	}
	return folder.WriteFile(d.Cert(id.name), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func (id identity) template(now time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	c := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: id.cn, Organization: id.groups},
		DNSNames:     id.dns,
		IPAddresses:  id.ips,
		NotBefore:    now.Add(-time.Hour), // clocks may differ a little
		NotAfter:     now.Add(lifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	switch {
	case id.issuer == "":
		c.IsCA, c.BasicConstraintsValid = true, true
		c.KeyUsage |= x509.KeyUsageCertSign
		c.ExtKeyUsage = nil
	case len(id.dns) > 0:
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	return c, nil
}

func (d Dir) ensureServiceAccounts() error {
	content, err := os.ReadFile(d.Key(ServiceAccounts))
	if errors.Is(err, fs.ErrNotExist) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return err
		}
		return writeKey(d.Key(ServiceAccounts), key)
	}
	if err != nil {
		return err
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return fmt.Errorf("%s contains no PEM block", d.Key(ServiceAccounts))
	}
	_, err = x509.ParseECPrivateKey(block.Bytes)
	return err
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return folder.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
}
