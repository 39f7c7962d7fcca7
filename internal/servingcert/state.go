// Package servingcert keeps the serving certificate of webhooks in a Secret, which the replicas of an operator share, and has
// webhook configurations trust it.
//
// Each certificate has a certificate authority of its own, whose key is not kept. A certificate is replaced in two steps: first
// the new authority joins the old one in the bundle that API servers trust, and later the new certificate is served.
package servingcert

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// The keys in the Secret.
const (
	keyBundle   = "ca.crt"
	keyCert     = "tls.crt"
	keyKey      = "tls.key"
	keyNextCert = "next.crt"
	keyNextKey  = "next.key"
)

// backdate is how long before its creation a certificate is valid: clocks differ.
const backdate = time.Hour

// terms are how long certificates last.
type terms struct {
	hosts    []string
	lifetime time.Duration
	settle   time.Duration // from the creation of a certificate to its use
}

// advance returns the data of the Secret as it should be now, or the same data if it is as it should be. published says
// that the configurations trust the bundle in data.
func (t terms) advance(data map[string][]byte, published bool, now time.Time) (map[string][]byte, error) {
	current, err := leaf(data, keyCert, keyKey)
	if err != nil || now.After(current.NotAfter) { // nothing works with it, so there is nothing to be careful with
		return t.fresh(now)
	}
	due := now.After(current.NotAfter.Add(-t.lifetime/3)) || !covers(current, t.hosts)
	waiting, err := leaf(data, keyNextCert, keyNextKey)
	switch {
	case err != nil && !due:
		return data, nil
	case err != nil:
		return t.prepare(data, now)
	case published && !now.Before(waiting.NotBefore.Add(backdate+t.settle)):
		return map[string][]byte{keyBundle: data[keyBundle], keyCert: data[keyNextCert], keyKey: data[keyNextKey]}, nil
	}
	return data, nil
}

// fresh returns data with one new certificate.
func (t terms) fresh(now time.Time) (map[string][]byte, error) {
	ca, cert, key, err := issue(t.hosts, now, t.lifetime)
	return map[string][]byte{keyBundle: ca, keyCert: cert, keyKey: key}, err
}

// prepare adds a certificate that is served later, and has the bundle trust it already.
func (t terms) prepare(data map[string][]byte, now time.Time) (map[string][]byte, error) {
	ca, cert, key, err := issue(t.hosts, now, t.lifetime)
	bundle := append(unexpired(data[keyBundle], now), ca...)
	return map[string][]byte{
		keyBundle: bundle, keyCert: data[keyCert], keyKey: data[keyKey], keyNextCert: cert, keyNextKey: key,
	}, err
}

// leaf returns the certificate in data if it has a key that fits and the bundle trusts it.
func leaf(data map[string][]byte, cert, key string) (*x509.Certificate, error) {
	pair, err := tls.X509KeyPair(data[cert], data[key])
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(data[keyBundle])
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: pair.Leaf.NotBefore})
	return pair.Leaf, err
}

func covers(cert *x509.Certificate, hosts []string) bool {
	for _, host := range hosts {
		if cert.VerifyHostname(host) != nil {
			return false
		}
	}
	return true
}

// unexpired returns the certificates of a bundle that are still valid.
func unexpired(bundle []byte, now time.Time) []byte {
	var out []byte
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && now.Before(c.NotAfter) {
			out = append(out, pem.EncodeToMemory(block)...)
		}
	}
	return out
}

// issue returns a new authority and a certificate for hosts, in PEM. The key of the authority is forgotten.
func issue(hosts []string, now time.Time, lifetime time.Duration) (ca, cert, key []byte, err error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("make a key: %w", err)
	}
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("make a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, nil, fmt.Errorf("make a serial number: %w", err)
	}
	authority := &x509.Certificate{
		SerialNumber: serial, NotBefore: now.Add(-backdate), NotAfter: now.Add(lifetime),
		// Verifiers find the authority of a certificate by its subject, so each has its own.
		Subject: pkix.Name{CommonName: "webhooks " + serial.Text(36)},
		IsCA:    true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	serving := &x509.Certificate{
		SerialNumber: new(big.Int).Add(serial, big.NewInt(1)), NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
		Subject:  pkix.Name{CommonName: hosts[0]},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			serving.IPAddresses = append(serving.IPAddresses, ip)
			continue
		}
		serving.DNSNames = append(serving.DNSNames, host)
	}
	caDER, err := x509.CreateCertificate(rand.Reader, authority, authority, &caKey.PublicKey, caKey)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("make a certificate authority: %w", err)
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, serving, authority, &leafKey.PublicKey, caKey)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("make a certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("encode a key: %w", err)
	}
	encode := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	return encode("CERTIFICATE", caDER), encode("CERTIFICATE", leafDER), encode("PRIVATE KEY", keyDER), nil
}

func same(a, b map[string][]byte) bool {
	for _, key := range []string{keyBundle, keyCert, keyKey, keyNextCert, keyNextKey} {
		if !bytes.Equal(a[key], b[key]) {
			return false
		}
	}
	return true
}
