package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	listers "k8s.io/apiextensions-apiserver/pkg/client/listers/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

var jsonCodec = unstructured.UnstructuredJSONScheme

// customHandler serves one CRD's resources by the real server's own handler.
func customHandler(crd *apiextensionsv1.CustomResourceDefinition, schemas map[string]*spec.Schema) (http.Handler, error) {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := indexer.Add(settled(crd)); err != nil {
		return nil, err
	}
	informer := definitionInformer{
		cache.NewSharedIndexInformer(&cache.ListWatch{}, &apiextensionsv1.CustomResourceDefinition{}, 0, cache.Indexers{}),
		listers.NewCustomResourceDefinitionLister(indexer),
	}
	h, err := crdserver.NewCustomResourceDefinitionHandler(nil, nil, informer, http.HandlerFunc(notFound), customStorage{},
		admissionChain(), nil, noWebhooks{},
		func(webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver { return noWebhooks{} },
		1, byRoles(), time.Minute, 30*time.Minute, schemas, 3<<20)
	if err != nil {
		return nil, fmt.Errorf("serve custom resources: %w", err)
	}
	return h, nil
}

// definitionInformer shows the handler its CRD.
type definitionInformer struct {
	informer cache.SharedIndexInformer
	lister   listers.CustomResourceDefinitionLister
}

func (d definitionInformer) Informer() cache.SharedIndexInformer            { return d.informer }
func (d definitionInformer) Lister() listers.CustomResourceDefinitionLister { return d.lister }

// settled returns a CRD as one that has been there for a while: the handler lets the first
// create wait for two seconds after a CRD was established.
func settled(c *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	c = c.DeepCopy()
	for i := range c.Status.Conditions {
		c.Status.Conditions[i].LastTransitionTime = longAgo()
	}
	return c
}

// notFound is what the real server answers where nothing is served.
func notFound(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "404 page not found", http.StatusNotFound)
}

// noWebhooks refuses to call the webhooks that convert custom resources between versions.
type noWebhooks struct{}

var errNoWebhooks = errors.New("kubesim calls no webhooks; use objects in the storage version of their CRD alone")

func (noWebhooks) ResolveEndpoint(string, string, int32) (*url.URL, error) { return nil, errNoWebhooks }

func (n noWebhooks) ClientConfigForService(string, string, int) (*rest.Config, error) {
	return n.ClientConfigFor("")
}

// ClientConfigFor is called before anything is converted, so it cannot refuse yet.
func (noWebhooks) ClientConfigFor(string) (*rest.Config, error) {
	return &rest.Config{Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errNoWebhooks }}, nil
}
