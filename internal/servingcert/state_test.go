package servingcert

import (
	"crypto/x509"
	"testing"
	"time"
)

// TestAdvance follows one certificate through its replacement.
func TestAdvance(t *testing.T) {
	t.Parallel()
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	rules := terms{[]string{"a.b.svc", "127.0.0.1"}, 90 * 24 * time.Hour, time.Hour}
	step := func(rules terms, data map[string][]byte, published bool, now time.Time) map[string][]byte {
		t.Helper()
		out, err := rules.advance(data, published, now)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	first := step(rules, nil, false, start)
	check(t, first, first, rules.hosts, start)
	if again := step(rules, first, true, start.Add(59*24*time.Hour)); !same(first, again) {
		t.Error("a certificate that lasts is replaced")
	}
	due := start.Add(61 * 24 * time.Hour)
	prepared := step(rules, first, true, due)
	if string(prepared[keyCert]) != string(first[keyCert]) {
		t.Error("the new certificate is served before it is trusted")
	}
	if same(first, prepared) {
		t.Fatal("no new certificate two thirds into the lifetime of the old one")
	}
	for why, early := range map[string]map[string][]byte{
		"API servers have had no time to learn of it": step(rules, prepared, true, due.Add(59*time.Minute)),
		"a configuration does not trust it":           step(rules, prepared, false, due.Add(2*time.Hour)),
	} {
		if !same(prepared, early) {
			t.Errorf("the new certificate is served although %s", why)
		}
	}
	last := step(rules, prepared, true, due.Add(time.Hour))
	if string(last[keyCert]) != string(prepared[keyNextCert]) {
		t.Fatal("the new certificate is not served")
	}
	now := due.Add(time.Hour)
	for _, trusted := range []map[string][]byte{prepared, last} {
		check(t, first, trusted, rules.hosts, now)
		check(t, last, trusted, rules.hosts, now)
	}
	later := step(rules, last, true, now.Add(61*24*time.Hour))
	if n := len(unexpired(later[keyBundle], now.Add(61*24*time.Hour))); n != len(later[keyBundle]) || len(later[keyBundle]) > len(prepared[keyBundle])+100 {
		t.Errorf("the bundle keeps authorities that have expired: %s", later[keyBundle])
	}
	elsewhere := rules
	elsewhere.hosts = append([]string{"other.svc"}, rules.hosts...)
	if moved := step(elsewhere, first, true, start); len(moved[keyNextCert]) == 0 {
		t.Error("a certificate that does not cover a host is not replaced")
	}
	if expired := step(rules, prepared, false, start.Add(91*24*time.Hour)); len(expired[keyNextCert]) > 0 || string(expired[keyCert]) == string(first[keyCert]) {
		t.Error("an expired certificate is not replaced at once")
	}
}

// check verifies the certificate that served has with the bundle that trusted has.
func check(t *testing.T, served, trusted map[string][]byte, hosts []string, now time.Time) {
	t.Helper()
	cert, err := leaf(served, keyCert, keyKey)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(trusted[keyBundle])
	for _, host := range hosts {
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, DNSName: host}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}
