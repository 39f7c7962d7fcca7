package apiserver

import (
	"fmt"
	"net/http"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	listers "k8s.io/apiextensions-apiserver/pkg/client/listers/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/tools/cache"
)

var jsonCodec = unstructured.UnstructuredJSONScheme

// customHandler serves one CRD's resources by the real server's own handler.
func (s *Server) customHandler(crd *apiextensionsv1.CustomResourceDefinition) (http.Handler, error) {
	by := carried{converters{s}}
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := indexer.Add(settled(crd)); err != nil {
		return nil, err
	}
	informer := definitionInformer{
		cache.NewSharedIndexInformer(&cache.ListWatch{}, &apiextensionsv1.CustomResourceDefinition{}, 0, cache.Indexers{}),
		listers.NewCustomResourceDefinitionLister(indexer),
	}
	h, err := crdserver.NewCustomResourceDefinitionHandler(nil, nil, informer, http.HandlerFunc(notFound), customStorage{},
		admissionChain(), nil, by,
		func(webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver { return by },
		1, byRoles(), time.Minute, 30*time.Minute, s.core.schemas, 3<<20)
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
	if conversion := c.Spec.Conversion; conversion != nil && conversion.Webhook != nil && conversion.Webhook.ClientConfig != nil {
		conversion.Webhook.ClientConfig.CABundle = nil // a client with certificates would not use our transport
	}
	return c
}

// notFound is what the real server answers where nothing is served.
func notFound(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "404 page not found", http.StatusNotFound)
}
