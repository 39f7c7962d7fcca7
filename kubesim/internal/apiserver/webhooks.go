package apiserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/generic"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// Webhooks is how a server calls the webhooks of its clusters: those that their webhook configurations and
// CRDs name, and those that are implied.
type Webhooks struct {
	by http.RoundTripper

	mu      sync.Mutex
	implied []implied // sorted by path
}

// implied is a webhook that no configuration names.
type implied struct {
	path  string
	hooks *hooks
}

// NewWebhooks returns webhooks that are called by a transport. The path of a request's URL is that of the
// webhook; certificates are ignored.
func NewWebhooks(by http.RoundTripper) *Webhooks { return &Webhooks{by: by} }

// Imply has the webhook at a path called for each create and update of a resource, as long as no configuration
// names the path.
func (w *Webhooks) Imply(path string, isMutating bool, of schema.GroupVersionResource) {
	rules := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{of.Group}, APIVersions: []string{of.Version}, Resources: []string{of.Resource},
		},
	}}
	at := admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
		Namespace: operatorNamespace, Name: "webhook-service", Path: &path,
	}}
	name := strings.Trim(strings.ReplaceAll(path, "/", "."), ".")
	var m []*admissionregistrationv1.MutatingWebhookConfiguration
	var v []*admissionregistrationv1.ValidatingWebhookConfiguration
	none := new(admissionregistrationv1.SideEffectClassNone)
	if isMutating {
		c := &admissionregistrationv1.MutatingWebhookConfiguration{Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: name, ClientConfig: at, Rules: rules, SideEffects: none, AdmissionReviewVersions: []string{"v1"},
		}}}
		c.Name = name
		legacyscheme.Scheme.Default(c)
		m = append(m, c)
	} else {
		c := &admissionregistrationv1.ValidatingWebhookConfiguration{Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: name, ClientConfig: at, Rules: rules, SideEffects: none, AdmissionReviewVersions: []string{"v1"},
		}}}
		c.Name = name
		legacyscheme.Scheme.Default(c)
		v = append(v, c)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	i, found := slices.BinarySearchFunc(w.implied, path, func(i implied, path string) int { return cmp.Compare(i.path, path) })
	if !found {
		w.implied = slices.Insert(w.implied, i, implied{path, newHooks(nil, m, v)})
	}
}

// besides are the implied webhooks whose paths no configuration names.
func (w *Webhooks) besides(named *hooks) (all []*hooks) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, i := range w.implied {
		if !named.paths[i.path] {
			all = append(all, i.hooks)
		}
	}
	return all
}

// CallWebhooks lets the server call webhooks. Nil, as in the beginning, means that configurations are stored and
// nothing is called, and that no custom resource is converted by a webhook.
func (s *Server) CallWebhooks(w *Webhooks) { s.webhooks.Store(w) }

type webhooksKey struct{}

// hooks are the admission webhooks of a cluster, in the real server's plugins. They must not be modified.
type hooks struct {
	mutating *mutating.Plugin
	// validating has a plugin for each webhook: one would call all of them at once, in any order.
	validating []*validating.Plugin
	paths      map[string]bool
}

//arch:state it names a computation; its results are kept in each cluster
var hooksOf = store.NewMemo(func(stored []store.Stored) *hooks {
	var namespaces []*corev1.Namespace
	var m []*admissionregistrationv1.MutatingWebhookConfiguration
	var v []*admissionregistrationv1.ValidatingWebhookConfiguration
	for _, s := range stored {
		switch o := decodeStored(s).(type) {
		case *corev1.Namespace:
			namespaces = append(namespaces, o)
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			m = append(m, o)
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			v = append(v, o)
		}
	}
	return newHooks(namespaces, m, v)
}, "/"+mutatingResource+"/", "/"+validatingResource+"/", "/namespaces/")

const (
	mutatingResource   = "mutatingwebhookconfigurations"
	validatingResource = "validatingwebhookconfigurations"
)

// newHooks makes the plugins for configurations in their order, which it may modify.
func newHooks(namespaces []*corev1.Namespace, m []*admissionregistrationv1.MutatingWebhookConfiguration,
	v []*admissionregistrationv1.ValidatingWebhookConfiguration,
) *hooks {
	h := &hooks{paths: map[string]bool{}}
	known := func() informers.SharedInformerFactory {
		f := informers.NewSharedInformerFactory(nil, 0)
		for _, ns := range namespaces {
			add(f.Core().V1().Namespaces().Informer().GetIndexer(), ns)
		}
		return f
	}
	if len(m) > 0 {
		f := known()
		for _, c := range m {
			for i := range c.Webhooks {
				h.take(&c.Webhooks[i].ClientConfig)
			}
			add(f.Admissionregistration().V1().MutatingWebhookConfigurations().Informer().GetIndexer(), c)
		}
		plugin, err := mutating.NewMutatingWebhook(nil)
		h.mutating = plugin
		ready(plugin.Webhook, f, err)
	}
	for _, c := range v {
		for i := range c.Webhooks {
			h.take(&c.Webhooks[i].ClientConfig)
			one := *c
			one.Webhooks = c.Webhooks[i : i+1]
			f := known()
			add(f.Admissionregistration().V1().ValidatingWebhookConfigurations().Informer().GetIndexer(), &one)
			plugin, err := validating.NewValidatingAdmissionWebhook(nil)
			h.validating = append(h.validating, plugin)
			ready(plugin.Webhook, f, err)
		}
	}
	return h
}

// take notes the path of a webhook. A client with certificates would not use our transport.
func (h *hooks) take(at *admissionregistrationv1.WebhookClientConfig) {
	at.CABundle = nil
	switch {
	case at.Service != nil && at.Service.Path != nil:
		h.paths[*at.Service.Path] = true
	case at.URL != nil:
		if u, err := url.Parse(*at.URL); err == nil {
			h.paths[u.Path] = true
		}
	}
}

// ready gives a plugin what the real server gives it. Nothing of it can fail that was stored by a registry.
func ready(w *generic.Webhook, f informers.SharedInformerFactory, err error) {
	if err == nil {
		w.SetExternalKubeClientSet(pluginClient{})
		w.SetExternalKubeInformerFactory(f)
		w.SetUnconditionalAuthorizer(byRoles())
		w.SetServiceResolver(carried{})
		w.SetAuthenticationInfoResolverWrapper(func(webhookutil.AuthenticationInfoResolver) webhookutil.AuthenticationInfoResolver {
			return carried{carrier{}}
		})
		err = w.ValidateInitialization()
	}
	if err != nil {
		panic(fmt.Sprintf("kubesim: make the plugins that call webhooks: %v", err))
	}
	w.SetReadyFunc(func() bool { return true })
}

// carried makes the clients that call webhooks use a transport instead of looking for services.
type carried struct{ by http.RoundTripper }

var (
	_ webhookutil.ServiceResolver            = carried{}
	_ webhookutil.AuthenticationInfoResolver = carried{}
)

// ResolveEndpoint leaves the address of a service as it is.
func (carried) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	return &url.URL{Scheme: "https", Host: fmt.Sprintf("%s.%s.svc:%d", name, namespace, port)}, nil
}

// ClientConfigFor is how to call a webhook at a URL.
func (c carried) ClientConfigFor(string) (*rest.Config, error) {
	return &rest.Config{Transport: c.by}, nil
}

// ClientConfigForService is how to call a webhook behind a service.
func (c carried) ClientConfigForService(string, string, int) (*rest.Config, error) {
	return &rest.Config{Transport: c.by}, nil
}

// carrier calls admission webhooks for the server that serves the request.
type carrier struct{}

// RoundTrip calls a webhook.
func (carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	w, ok := r.Context().Value(webhooksKey{}).(*Webhooks)
	if !ok {
		return nil, errNoWebhooks
	}
	return w.by.RoundTrip(r)
}

// converters calls the webhooks that convert custom resources, which happens without a request's context.
type converters struct{ server *Server }

// RoundTrip calls a webhook.
func (c converters) RoundTrip(r *http.Request) (*http.Response, error) {
	w := c.server.webhooks.Load()
	if w == nil {
		return nil, errNoWebhooks
	}
	return w.by.RoundTrip(r)
}

var errNoWebhooks = errors.New("kubesim calls no webhooks here; use objects in the storage version of their CRD alone")

// admissionWebhooks calls the webhooks of the request's cluster.
type admissionWebhooks struct{ *admission.Handler }

func newAdmissionWebhooks() admissionWebhooks {
	return admissionWebhooks{admission.NewHandler(admission.Connect, admission.Create, admission.Delete, admission.Update)}
}

var (
	_ admission.MutationInterface   = admissionWebhooks{}
	_ admission.ValidationInterface = admissionWebhooks{}
)

// of are the webhooks that may have to be called for a request, grouped by plugins.
func (admissionWebhooks) of(ctx context.Context) []*hooks {
	w, ok := ctx.Value(webhooksKey{}).(*Webhooks)
	if !ok {
		return nil
	}
	named := hooksOf.Of(store.From(ctx))
	return append([]*hooks{named}, w.besides(named)...)
}

// Admit calls mutating webhooks one after another.
func (a admissionWebhooks) Admit(ctx context.Context, attr admission.Attributes, o admission.ObjectInterfaces) error {
	for _, h := range a.of(ctx) {
		if h.mutating == nil {
			continue
		}
		if err := h.mutating.Admit(ctx, attr, o); err != nil {
			return err
		}
	}
	return nil
}

// Validate calls all validating webhooks, whatever the first ones say, and returns the first refusal.
func (a admissionWebhooks) Validate(ctx context.Context, attr admission.Attributes, o admission.ObjectInterfaces) error {
	var first error
	for _, h := range a.of(ctx) {
		for _, plugin := range h.validating {
			if err := plugin.Validate(ctx, attr, o); first == nil {
				first = err
			}
		}
	}
	return first
}

// reinvoking lets a chain act twice if a webhook has changed the object, as the real server does.
type reinvoking struct{ chain admission.Interface }

var (
	_ admission.MutationInterface   = reinvoking{}
	_ admission.ValidationInterface = reinvoking{}
)

// Handles reports whether the chain has anything to say.
func (r reinvoking) Handles(o admission.Operation) bool { return r.chain.Handles(o) }

// Admit lets the chain change an object.
func (r reinvoking) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	mutating := r.chain.(admission.MutationInterface)
	if err := mutating.Admit(ctx, a, o); err != nil {
		return err
	}
	if again := a.GetReinvocationContext(); again.ShouldReinvoke() {
		again.SetIsReinvoke()
		return mutating.Admit(ctx, a, o)
	}
	return nil
}

// Validate lets the chain refuse an object.
func (r reinvoking) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	return r.chain.(admission.ValidationInterface).Validate(ctx, a, o)
}
