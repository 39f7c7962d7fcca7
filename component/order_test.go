package component_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionshelpers "k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/testenv"
)

// TestOrder has an API server of its own, whose audit log says what it was asked. The one that all tests
// share is the aggregated API server behind it.
func TestOrder(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	t.Run("order", func(t *testing.T) {
		t.Run("004-60 creation", func(t *testing.T) {
			t.Parallel()
			creationOrder(t, s)
		})
		t.Run("004-61 deletion", func(t *testing.T) {
			t.Parallel()
			deletionOrder(t, s)
		})
		t.Run("004-63 objects of an aggregated API", func(t *testing.T) {
			t.Parallel()
			foreignThings(t, s)
		})
		t.Run("B-7 implicit edges", func(t *testing.T) {
			t.Parallel()
			implicitEdges(t, s)
		})
	})
}

// shipment is a component with one object of each kind that has a place of its own in the order.
type shipment struct {
	*bench

	site *site
	// other is a namespace of the component, and things a kind that its APIService serves.
	other   string
	things  schema.GroupKind
	objects []client.Object
}

// newShipment returns a shipment for an API server with an audit log. Its instance of Baz has a finalizer.
func newShipment(t *testing.T, s *site) *shipment {
	t.Helper()
	b := prepareBenchOn(t, s.cfg)
	b.cfg.UserAgent = b.operator
	p := &shipment{bench: b, site: s, other: b.namespace + "-x", things: schema.GroupKind{Group: b.namespace + ".things.example.org", Kind: "Thing"}}
	account := &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	web := deployment("web", "none")
	web.Spec.Template.Spec.ServiceAccountName = "web"
	inside := configMap("inside", "1")
	inside.Namespace = p.other
	baz := b.bazOf("ours")
	baz.SetFinalizers([]string{"example.org/holds"})
	p.objects = append([]client.Object{ // the reverse of their order
		object(p.things.Group+"/v1", p.things.Kind, "ours", nil), baz, web, account, inside, p.binding("web"), role("r"), configMap("one", "1"),
		&corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: "s"}},
		object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", b.namespace, map[string]any{"webhooks": []any{}}),
		plain(b.baz()), object("v1", "Namespace", p.other, nil),
	}, b.aggregate(p.things)...)
	b.start()
	return p
}

// aggregate has a kind served by another API server: by the one that all tests share. It returns the objects
// that make it known. The API server finds the other one by a Service that is an external name. Without a
// certificate it does not verify whom it asks.
func (b *bench) aggregate(kind schema.GroupKind, certificates ...tls.Certificate) []client.Object {
	b.t.Helper()
	behind := testenv.Start(b.t)
	testenv.Install(b.t, behind, plain(kind))
	if err := testenv.Client(b.t, behind).Create(b.t.Context(), object("v1", "Namespace", b.namespace, nil)); err != nil {
		b.t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(proxyTo(b.t, behind))
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: certificates}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // who does not trust the certificate
	server.StartTLS()
	b.t.Cleanup(server.Close)
	b.t.Cleanup(server.CloseClientConnections) // before that: watches do not end by themselves
	b.t.Cleanup(func() {                       // what is not served keeps namespaces from being deleted
		_ = b.admin.Delete(context.WithoutCancel(b.t.Context()), object("apiregistration.k8s.io/v1", "APIService", "v1."+kind.Group, nil))
	})
	port := server.Listener.Addr().(*net.TCPAddr).Port
	return []client.Object{
		object("v1", "Service", "things", map[string]any{"spec": map[string]any{
			"type": "ExternalName", "externalName": "127.0.0.1", "ports": []any{map[string]any{"port": int64(port)}},
		}}),
		object("apiregistration.k8s.io/v1", "APIService", "v1."+kind.Group, map[string]any{"spec": map[string]any{
			"group": kind.Group, "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100), "insecureSkipTLSVerify": len(certificates) == 0,
			"service": map[string]any{"namespace": b.namespace, "name": "things", "port": int64(port)},
		}}),
	}
}

// proxyTo answers requests as an API server does to its administrator.
func proxyTo(t *testing.T, cfg *rest.Config) http.Handler {
	t.Helper()
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	return &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0), // watches that end
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
	}
}

// binding binds a service account to role r.
func (b *bench) binding(account string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"}, ObjectMeta: metav1.ObjectMeta{Name: account},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "r"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: b.namespace, Name: account}},
	}
}

// audited waits until the audit log has the requests so far, and returns those that wrote dependents with
// one of some verbs, in the order in which they were answered.
func (p *shipment) audited(verbs ...string) []audited {
	p.t.Helper()
	var all []audited
	within(p.t, "the audit log", func() bool {
		all = p.site.sent(p.t, p.operator)
		return len(all) >= len(p.requests.Select(func(r testenv.Request) bool { return r.Verb != "watch" && r.Code != 0 }))
	})
	return slices.DeleteFunc(all, func(r audited) bool {
		return !slices.Contains(verbs, r.Verb) || r.Object.Resource == "bundles" || r.Object.Resource == "events" || strings.HasPrefix(r.Object.Resource, "validatingadmission")
	})
}

// stages fails the test unless the requests are for these resources, stage after stage. Within a stage
// there is no order.
func (p *shipment) stages(sent []audited, stages ...string) {
	p.t.Helper()
	var got []string
	for _, r := range sent {
		got = append(got, r.Object.Resource)
	}
	left := got
	for _, stage := range stages {
		want := strings.Fields(stage)
		n := min(len(want), len(left))
		now := slices.Clone(left[:n])
		slices.Sort(now)
		if left = left[n:]; strings.Join(now, " ") != stage {
			p.t.Errorf("%v, want %q next\nall: %v", now, stage, got)
			return
		}
	}
	if len(left) > 0 {
		p.t.Errorf("%v are left\nall: %v", left, got)
	}
}

func creationOrder(t *testing.T, s *site) {
	t.Helper()
	p := newShipment(t, s)
	p.create(p.objects...)
	p.ready()
	sent := p.audited("create", "patch", "update")
	p.found(s.sent(t, p.operator))
	p.stages(sent, "namespaces", "validatingwebhookconfigurations", "customresourcedefinitions roles",
		"configmaps configmaps rolebindings secrets", "serviceaccounts services", "deployments", "apiservices", "bazs things")
	for _, r := range sent {
		if r.Response.Code != http.StatusCreated {
			t.Errorf("%s %s was answered with %d", r.Verb, r.Path, r.Response.Code)
		}
	}
}

// found fails the test if a request was answered with 404. One kind of them is not the operator's doing: it asks
// in which places a kind is served once the definition is Established, or the APIService Available. API servers
// fill the answer, and their routes to others, from queues that are triggered by the same change as the operator
// (customresource_discovery_controller.go of k8s.io/apiextensions-apiserver, apiservice_controller.go of
// k8s.io/kube-aggregator). A busy one falls behind, and says 404 until then.
func (p *shipment) found(sent []audited) {
	p.t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := p.admin.Get(p.t.Context(), client.ObjectKeyFromObject(p.crd()), crd); err != nil {
		p.t.Fatal(err)
	}
	established := apiextensionshelpers.FindCRDCondition(crd, apiextensionsv1.Established).LastTransitionTime.Time
	created := map[string]bool{}
	for _, r := range sent {
		if r.Response.Code == http.StatusCreated {
			created[r.Object.Resource] = true
		}
		switch {
		case r.Response.Code != http.StatusNotFound:
		case r.Path == "/apis/"+p.baz().Group+"/v1" && !r.Received.Before(established),
			r.Path == "/apis/"+p.things.Group+"/v1" && created["apiservices"]:
			p.t.Logf("the API server is not as far as its definition: %s %s", r.Verb, r.Path)
		default:
			p.t.Errorf("not found: %s %s", r.Verb, r.Path)
		}
	}
}

func deletionOrder(t *testing.T, s *site) {
	t.Helper()
	p := newShipment(t, s)
	p.create(p.objects...)
	p.ready()
	writes := len(p.audited("create", "patch", "update", "delete"))
	p.delete()
	p.waiting("Baz "+p.namespace+"/ours", "example.org/holds")
	p.fence()
	for _, r := range p.audited("create", "patch", "update", "delete")[writes:] {
		if r.Object.Resource != "bazs" && r.Object.Resource != "things" {
			t.Errorf("%s %s while an instance of a type of the component exists", r.Verb, r.Path)
		}
	}
	if live := deployment("web", ""); uid(p.bench, live) == "" || live.DeletionTimestamp != nil {
		t.Error("what runs the instances is being deleted")
	}
	p.patch(p.baz().Group+"/v1", p.baz().Kind, "ours", `{"metadata":{"finalizers":null}}`)
	p.gone()
	p.stages(p.audited("delete"), "bazs things", "apiservices customresourcedefinitions", "deployments",
		"rolebindings roles serviceaccounts validatingwebhookconfigurations", "configmaps configmaps secrets services", "namespaces")
	testenv.Gone(t, p.admin, object("v1", "Namespace", p.other, nil), "deleted")
}

func foreignThings(t *testing.T, s *site) {
	t.Helper()
	b := prepareBenchOn(t, s.cfg)
	b.tune = released
	b.start()
	things := schema.GroupKind{Group: b.namespace + ".things.example.org", Kind: "Thing"}
	b.create(append(b.aggregate(things), configMap("one", "1"))...)
	live := b.ready()
	within(t, "the discovery of things", func() bool { // API servers fill it from a queue
		_, err := b.admin.RESTMapper().RESTMapping(things, "v1")
		return err == nil
	})
	theirs := b.put(object(things.Group+"/v1", things.Kind, "theirs", nil))
	versions := b.versions(live)
	b.requests.Reset()
	b.delete()
	b.blocked(component.StateDeleting, "1 object of kind Thing ("+b.namespace+"/theirs)", "delete them", b.key("abandon"))
	b.fence() // passes go on, and nothing happens
	b.untouched()
	if now := b.versions(live); !slices.Equal(now, versions) {
		t.Errorf("the dependents are %v, want %v", now, versions)
	}
	b.drop(theirs)
	b.gone()
	b.absent(b.named("one"))
}

// versions are the resource versions of the dependents.
func (b *bench) versions(o *bundle.Bundle) []string {
	b.t.Helper()
	var out []string
	for _, item := range o.Status.Inventory {
		u := object(strings.TrimPrefix(item.Group+"/"+item.Version, "/"), item.Kind, item.Name, nil)
		u.SetNamespace(item.Namespace)
		out = append(out, fmt.Sprint(item.Key(), " ", b.exists(u).GetResourceVersion()))
	}
	return out
}
