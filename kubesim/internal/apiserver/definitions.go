package apiserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

const (
	crdResource = "customresourcedefinitions"
	crdPrefix   = "/" + apiextensionsv1.GroupName + "/" + crdResource
)

// definition is a CRD in a cluster.
type definition struct {
	*apiextensionsv1.CustomResourceDefinition
	// print is the same for definitions that are served in the same way.
	print [sha256.Size]byte
	// stored is what it was read from.
	stored store.Stored
}

// definitions are those of a cluster, sorted by name. They must not be modified.
type definitions []*definition

//arch:state it names a computation; its results are kept in each cluster
var definitionsOf = store.NewRenewed(newDefinitions, crdPrefix+"/")

// newDefinitions reads CRDs. Those that have not changed are the same as before: some are large.
func newDefinitions(before definitions, stored []store.Stored) definitions {
	var all definitions
	for _, s := range stored {
		if d := before.byName(strings.TrimPrefix(s.Key, crdPrefix+"/")); d != nil && d.stored.Rev == s.Rev && bytes.Equal(d.stored.Data, s.Data) {
			all = append(all, d)
			continue
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := json.Unmarshal(s.Data, crd); err != nil {
			panic("kubesim: " + s.Key + " cannot be read: " + err.Error()) // a registry wrote it
		}
		crd.ResourceVersion = strconv.FormatInt(s.Rev, 10)
		apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(crd)
		all = append(all, &definition{crd, fingerprint(crd), s})
	}
	return all
}

// fingerprint covers what decides how a CRD is served.
func fingerprint(crd *apiextensionsv1.CustomResourceDefinition) [sha256.Size]byte {
	text, err := json.Marshal([]any{crd.Name, crd.Spec, crd.Status.AcceptedNames, crd.DeletionTimestamp == nil})
	if err != nil {
		panic(err) // it came from JSON
	}
	return sha256.Sum256(text)
}

func (all definitions) byName(name string) *definition {
	i, found := slices.BinarySearchFunc(all, name, func(d *definition, name string) int { return strings.Compare(d.Name, name) })
	if !found {
		return nil
	}
	return all[i]
}

// has tells whether a version of a group is served by custom resources.
func (all definitions) has(gv schema.GroupVersion) bool {
	return slices.ContainsFunc(all, func(d *definition) bool {
		return d.Spec.Group == gv.Group && d.served() && apihelpers.HasServedCRDVersion(d.CustomResourceDefinition, gv.Version)
	})
}

// versions yields the served versions of CRDs.
func (all definitions) versions() iter.Seq2[*definition, string] {
	return func(yield func(*definition, string) bool) {
		for _, d := range all {
			for _, v := range d.Spec.Versions {
				if d.served() && v.Served && !yield(d, v.Name) {
					return
				}
			}
		}
	}
}

func (d *definition) served() bool {
	return apihelpers.IsCRDConditionTrue(d.CustomResourceDefinition, apiextensionsv1.Established)
}

// custom returns the handler of a resource of a cluster.
func (s *Server) custom(db *store.DB, gr schema.GroupResource) (http.Handler, error) {
	d := definitionsOf.Of(db).byName(gr.Resource + "." + gr.Group)
	if d == nil || !d.served() {
		return http.HandlerFunc(notFound), nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h, ok := s.handlers[d.print]; ok {
		return h, nil
	}
	h, err := s.customHandler(d.CustomResourceDefinition)
	if err != nil {
		return nil, err
	}
	s.handlers[d.print] = h
	return h, nil
}

// definitionGroup is the group of CustomResourceDefinitions themselves.
func definitionGroup() (genericapiserver.APIGroupInfo, error) {
	group := genericapiserver.NewDefaultAPIGroupInfo(apiextensionsv1.GroupName, crdserver.Scheme, metav1.ParameterCodec, crdserver.Codecs)
	group.PrioritizedVersions = []schema.GroupVersion{apiextensionsv1.SchemeGroupVersion}
	registry, err := customresourcedefinition.NewREST(crdserver.Scheme, definitionStorage{})
	if err != nil {
		return group, fmt.Errorf("make the group of CRDs: %w", err)
	}
	group.VersionedResourcesStorageMap[apiextensionsv1.SchemeGroupVersion.Version] = map[string]rest.Storage{
		crdResource:             registry,
		crdResource + "/status": customresourcedefinition.NewStatusREST(crdserver.Scheme, registry),
	}
	return group, nil
}

// definitionStorage puts the memory store under CRDs.
type definitionStorage struct{}

func (definitionStorage) GetRESTOptions(gr schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	return restOptions(storagebackend.NewDefaultConfig("/registry", definitionCodec()).ForResource(gr), crdPrefix), nil
}

func definitionCodec() runtime.Codec {
	return crdserver.Codecs.LegacyCodec(apiextensionsv1.SchemeGroupVersion)
}

// install makes CRDs as a user would, so that a wrong one is refused as it is by a cluster,
// and keeps what is stored for the clusters to come.
func (s *Server) install(crds []*apiextensionsv1.CustomResourceDefinition) error {
	s.given, s.begin = map[string]metav1.ObjectMeta{}, store.Begin(nil)
	if len(crds) == 0 {
		return nil
	}
	db := store.New()
	client, err := s.definitionClient(db)
	if err != nil {
		return err
	}
	for _, crd := range crds {
		crd = crd.DeepCopy()
		crd.ResourceVersion, crd.UID, crd.ManagedFields = "", "", nil // it may come from a cluster
		//nolint:forbidigo // a server is made for many tests and ends with none of them
		if _, err := client.Create(context.Background(), crd, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("kubesim: install CRD %s: %w", crd.Name, err)
		}
	}
	var rows []store.Stored
	for _, d := range definitionsOf.Of(db) {
		if !d.served() {
			return fmt.Errorf("kubesim: install CRD %s: %s", d.Name, d.refusal())
		}
		row, crd := aged(d.CustomResourceDefinition)
		rows, s.given[row.Key] = append(rows, row), crd.ObjectMeta
	}
	first := store.Begin(rows).Open()
	definitionsOf.Of(first) // once for all clusters
	s.begin = first.Snapshot()
	return nil
}

// longAgo is before any bubble's clock begins.
func longAgo() metav1.Time { return metav1.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC) }

// aged returns a CRD as it is stored in each cluster from the start: older than the cluster,
// wherever it was made.
func aged(crd *apiextensionsv1.CustomResourceDefinition) (store.Stored, *apiextensionsv1.CustomResourceDefinition) {
	crd = crd.DeepCopy()
	crd.CreationTimestamp, crd.ManagedFields, crd.ResourceVersion = longAgo(), nil, ""
	for i := range crd.Status.Conditions {
		crd.Status.Conditions[i].LastTransitionTime = longAgo()
	}
	data, err := runtime.Encode(definitionCodec(), crd)
	if err != nil {
		panic(err) // it was decoded by the same codec
	}
	return store.Stored{Key: crdPrefix + "/" + crd.Name, Data: data}, crd
}

// Begin returns a new cluster that has the server's CRDs and nothing else. Clients can see, change and delete them.
func (s *Server) Begin() *store.DB { return s.begin.Open() }

// Given returns the CRDs that each cluster begins with, by key: their metadata, which must not be modified.
func (s *Server) Given() map[string]metav1.ObjectMeta { return s.given }
