package apiserver

import (
	"fmt"
	"net/http"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	listers "k8s.io/apiextensions-apiserver/pkg/client/listers/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

var jsonCodec = unstructured.UnstructuredJSONScheme

// customHandler serves custom resources by the real server's own handler. Its wait groups
// belong to the first bubble that uses it, so each bubble needs a handler of its own.
func customHandler(crds []*apiextensionsv1.CustomResourceDefinition, schemas map[string]*spec.Schema) (http.Handler, error) {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, c := range crds {
		if err := indexer.Add(established(c)); err != nil {
			return nil, err
		}
	}
	informer := definitions{
		cache.NewSharedIndexInformer(&cache.ListWatch{}, &apiextensionsv1.CustomResourceDefinition{}, 0, cache.Indexers{}),
		listers.NewCustomResourceDefinitionLister(indexer),
	}
	h, err := crdserver.NewCustomResourceDefinitionHandler(nil, nil, informer, http.NotFoundHandler(), customStorage{},
		admissionChain(), nil, nil,
		func(r webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver { return r },
		1, byRoles(), time.Minute, 30*time.Minute, schemas, 3<<20)
	if err != nil {
		return nil, fmt.Errorf("serve custom resources: %w", err)
	}
	return h, nil
}

// definitions shows the handler which CRDs there are.
type definitions struct {
	informer cache.SharedIndexInformer
	lister   listers.CustomResourceDefinitionLister
}

func (d definitions) Informer() cache.SharedIndexInformer            { return d.informer }
func (d definitions) Lister() listers.CustomResourceDefinitionLister { return d.lister }

// established returns a CRD as the API server shows it once it serves it.
func established(c *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	c = c.DeepCopy()
	apiextensionsv1.SetDefaults_CustomResourceDefinition(c)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&c.Spec)
	c.UID = types.UID("crd-" + c.Name)
	c.Status.AcceptedNames = c.Spec.Names
	for _, v := range c.Spec.Versions {
		if v.Storage {
			c.Status.StoredVersions = []string{v.Name}
		}
	}
	for _, t := range []apiextensionsv1.CustomResourceDefinitionConditionType{apiextensionsv1.NamesAccepted, apiextensionsv1.Established} {
		c.Status.Conditions = append(c.Status.Conditions, apiextensionsv1.CustomResourceDefinitionCondition{
			Type: t, Status: apiextensionsv1.ConditionTrue,
			// Long before any bubble's clock begins: the handler waits a while after this time.
			LastTransitionTime: metav1.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC),
		})
	}
	return c
}
