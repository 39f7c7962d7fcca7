package operator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/metric"
	"github.com/trimtab-dev/trimtab/internal/servingcert"
)

// webhookHandler serves the webhooks.
func (d *design) webhookHandler() http.Handler {
	mux := http.NewServeMux()
	for _, h := range d.hooks {
		if w := h.Defaulting(d.scheme); w != nil {
			mux.Handle("POST "+h.path("default"), w)
		}
		if w := h.Validating(d.scheme); w != nil {
			mux.Handle("POST "+h.path("validate"), w)
		}
	}
	return mux
}

// serveWebhooks serves the webhooks in every replica, whether or not it leads.
func (p *process) serveWebhooks(ctx context.Context) error {
	if len(p.design.hooks) == 0 {
		return nil
	}
	l, err := listen(ctx, "webhook-address", p.settings.webhookAddress)
	if err != nil || l == nil {
		return err
	}
	certificate, err := p.certificate(ctx, l)
	if err != nil || certificate == nil {
		return errors.Join(err, l.Close())
	}
	p.servers.serve(tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate}), p.design.webhookHandler())
	return nil
}

type certificates func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// certificate returns where the certificate of webhooks on l comes from. It is nil if nobody can call them.
func (p *process) certificate(ctx context.Context, l net.Listener) (certificates, error) {
	if dir := p.settings.webhookCertDir; dir != "" {
		return p.mountedCertificate(ctx, dir)
	}
	base := p.webhookBase(l)
	if base == "" && !p.target.pod {
		p.log.Info("webhooks are not served: the API server is on another machine; set --webhook-url to where it reaches this one")
		return nil, nil //nolint:nilnil // documented above
	}
	name := p.design.webhookName()
	hosts := []string{name + "." + p.target.namespace + ".svc", "localhost", "127.0.0.1"}
	if base != "" {
		u, err := url.Parse(base)
		if err != nil || u.Scheme != "https" || u.Host == "" || u.Path != "" {
			return nil, fmt.Errorf("--webhook-url %q: use https://HOST:PORT", base)
		}
		hosts = append(hosts, u.Hostname())
	}
	direct, err := client.NewWithWatch(p.target.config, client.Options{Scheme: p.design.scheme})
	if err != nil {
		return nil, fmt.Errorf("set up the certificate of webhooks: %w", err)
	}
	p.keeper = servingcert.New(servingcert.Options{
		Client: direct, Secret: types.NamespacedName{Namespace: p.target.namespace, Name: name}, Hosts: hosts, URL: base,
		Configurations: p.design.webhookConfigurations(p.target.namespace, p.settings),
	})
	p.health.addReady("webhooks", p.keeper.Check)
	return p.keeper.GetCertificate, nil
}

// webhookBase returns the URL at which the API server reaches l, or an empty string if it uses the Service.
func (p *process) webhookBase(l net.Listener) string {
	if p.settings.webhookURL != "" {
		return p.settings.webhookURL
	}
	api, err := url.Parse(p.target.config.Host)
	_, port, bound := net.SplitHostPort(l.Addr().String())
	if p.target.pod || err != nil || bound != nil || !isLoopback(api.Hostname()) {
		return ""
	}
	return "https://127.0.0.1:" + port
}

// mountedCertificate returns the certificate in a directory, also after a change of the files.
func (p *process) mountedCertificate(ctx context.Context, dir string) (certificates, error) {
	w, err := certwatcher.New(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		return nil, fmt.Errorf("--webhook-cert-dir %s: %w", dir, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	p.servers.ending = append(p.servers.ending, cancel)
	p.servers.wg.Go(func() { _ = w.Start(ctx) }) // it returns nil when ctx ends
	p.health.addReady("webhooks", func(*http.Request) error {
		c, err := w.GetCertificate(nil)
		if err != nil {
			return err
		}
		leaf, err := x509.ParseCertificate(c.Certificate[0])
		switch {
		case err != nil:
			return err
		case time.Now().After(leaf.NotAfter):
			return fmt.Errorf("the certificate in %s has expired", dir)
		}
		p.showExpiry(leaf.NotAfter)
		return nil
	})
	return w.GetCertificate, nil
}

func (p *process) showExpiry(at time.Time) {
	metric.Registered(metric.CertExpiry.GaugeVec()).WithLabelValues(p.design.options.Name).Set(float64(at.Unix()))
}

// keepCertificate keeps the certificate of webhooks until ctx ends.
func (p *process) keepCertificate(ctx context.Context) {
	if p.keeper == nil {
		return
	}
	last := ""
	p.keeper.Run(ctx, func(expiry time.Time, err error) {
		if !expiry.IsZero() {
			p.showExpiry(expiry)
		}
		said := ""
		if err != nil {
			said = err.Error()
		}
		if said != "" && said != last {
			p.log.Error(nil, "the certificate of webhooks: "+said)
		}
		last = said
	})
}

// webhookSecret returns the permissions on the Secret of the certificate.
func (p *process) webhookSecret() []authorizationv1.ResourceAttributes {
	if p.keeper == nil {
		return nil
	}
	var out []authorizationv1.ResourceAttributes
	for _, r := range webhookRules(p.design.webhookName()) {
		for _, verb := range r.Verbs {
			a := authorizationv1.ResourceAttributes{Resource: "secrets", Verb: verb, Namespace: p.target.namespace}
			if len(r.ResourceNames) > 0 {
				a.Name = r.ResourceNames[0]
			}
			out = append(out, a)
		}
	}
	return out
}
