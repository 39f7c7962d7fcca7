package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	crdserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	crdbuilder "k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/kube-openapi/pkg/builder"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/common/restfuladapter"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	generatedopenapi "k8s.io/kubernetes/pkg/generated/openapi"

	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// builtinOpenAPI holds the OpenAPI documents of the built-in kinds. They take hundreds of
// milliseconds to make and most tests never ask, so they are made at the first question.
type builtinOpenAPI struct {
	paths []string // of which there is one in version 3: "apis/apps/v1"
	v3    func() *handler3.OpenAPIService
	v2    func() (*spec.Swagger, error)
}

func newBuiltinOpenAPI(of *genericapiserver.APIServerHandler) builtinOpenAPI {
	var o builtinOpenAPI
	c := of.GoRestfulContainer
	for _, ws := range c.RegisteredWebServices() {
		o.paths = append(o.paths, strings.TrimPrefix(ws.RootPath(), "/"))
	}
	o.v3 = sync.OnceValue(func() *handler3.OpenAPIService {
		return routes.OpenAPI{V3Config: openAPIConfig()}.InstallV3(c, mux.NewPathRecorderMux("kubesim"))
	})
	o.v2 = sync.OnceValues(func() (*spec.Swagger, error) {
		config := genericapiserver.DefaultOpenAPIConfig(generatedopenapi.GetOpenAPIDefinitions, definitionNamer())
		config.Info.Title, config.Info.Version = "Kubernetes", Version
		all, err := builder.BuildOpenAPISpecFromRoutes(restfuladapter.AdaptWebServices(c.RegisteredWebServices()), config)
		if err != nil {
			return nil, err
		}
		all.Definitions = handler.PruneDefaults(all.Definitions)
		return all, nil
	})
	return o
}

// openAPIConfig knows the definitions of all built-in types, which takes a moment to make.
func openAPIConfig() *common.OpenAPIV3Config {
	c := genericapiserver.DefaultOpenAPIV3Config(generatedopenapi.GetOpenAPIDefinitions, definitionNamer())
	c.Info.Title, c.Info.Version = "Kubernetes", Version
	return c
}

func definitionNamer() *openapinamer.DefinitionNamer {
	return openapinamer.NewDefinitionNamer(legacyscheme.Scheme, crdserver.Scheme)
}

// serveOpenAPI answers requests for OpenAPI documents, and reports whether it did.
func (s *Server) serveOpenAPI(db *store.DB, w http.ResponseWriter, r *http.Request) bool {
	path, ok := strings.CutPrefix(strings.Trim(r.URL.Path, "/"), "openapi/v")
	if !ok || r.Method != http.MethodGet {
		return false
	}
	version, of, _ := strings.Cut(path, "/")
	var err error
	switch {
	case path == "2":
		err = s.serveOpenAPIV2(definitionsOf.Of(db), w, r)
	case path == "3":
		err = s.listOpenAPIV3(definitionsOf.Of(db), w, r)
	case version == "3" && slices.Contains(s.core.openAPI.paths, of):
		s.core.openAPI.v3().HandleGroupVersion(w, r)
	case version == "3":
		err = definitionsOf.Of(db).serveOpenAPIV3(of, w, r)
	default:
		return false
	}
	if err != nil {
		http.Error(w, fmt.Sprintf("make the OpenAPI document: %v", err), http.StatusInternalServerError)
	}
	return true
}

// listOpenAPIV3 lists the documents in version 3: one for each version of a group.
func (s *Server) listOpenAPIV3(all definitions, w http.ResponseWriter, r *http.Request) error {
	custom, _, err := all.openAPIV3()
	if err != nil {
		return err
	}
	r = r.Clone(r.Context())
	r.Header = http.Header{} // the services must not answer that nothing is new
	var index handler3.OpenAPIV3Discovery
	for _, service := range []*handler3.OpenAPIService{custom, s.core.openAPI.v3()} {
		answer := &recorder{header: http.Header{}, code: http.StatusOK}
		service.HandleDiscovery(answer, r)
		if err := json.Unmarshal(answer.buffer.Bytes(), &index); err != nil { // adds to what is there
			return err
		}
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(index)
}

// serveOpenAPIV3 answers with the document of one version of a group of custom resources.
func (all definitions) serveOpenAPIV3(of string, w http.ResponseWriter, r *http.Request) error {
	custom, paths, err := all.openAPIV3()
	if err != nil {
		return err
	}
	if !slices.Contains(paths, of) {
		notFound(w, r)
		return nil
	}
	custom.HandleGroupVersion(w, r)
	return nil
}

// openAPIV3 makes the documents of custom resources in version 3, and says for which paths.
func (all definitions) openAPIV3() (service *handler3.OpenAPIService, paths []string, err error) {
	made := map[string]*spec3.OpenAPI{}
	service = handler3.NewOpenAPIService()
	for d, version := range all.versions() {
		one, err := crdbuilder.BuildOpenAPIV3(d.CustomResourceDefinition, version, crdbuilder.Options{IncludeSelectableFields: true})
		if err != nil {
			return nil, nil, fmt.Errorf("CRD %s: %w", d.Name, err)
		}
		path := "apis/" + d.Spec.Group + "/" + version
		if earlier, ok := made[path]; ok {
			if one, err = crdbuilder.MergeSpecsV3(earlier, one); err != nil {
				return nil, nil, fmt.Errorf("CRD %s: %w", d.Name, err)
			}
		}
		made[path] = one
		paths = append(paths, path)
	}
	for path, all := range made {
		service.UpdateGroupVersion(path, all)
	}
	return service, paths, nil
}

// serveOpenAPIV2 answers with the document in version 2, which is one for everything.
func (s *Server) serveOpenAPIV2(all definitions, w http.ResponseWriter, r *http.Request) error {
	merged, err := s.core.openAPI.v2()
	if err != nil {
		return err
	}
	var custom []*spec.Swagger
	for d, version := range all.versions() {
		one, err := crdbuilder.BuildOpenAPIV2(d.CustomResourceDefinition, version, crdbuilder.Options{V2: true, IncludeSelectableFields: true})
		if err != nil {
			return fmt.Errorf("CRD %s: %w", d.Name, err)
		}
		one.Definitions = handler.PruneDefaults(one.Definitions)
		custom = append(custom, one)
	}
	if merged, err = crdbuilder.MergeSpecs(merged, custom...); err != nil {
		return err
	}
	var service only
	handler.NewOpenAPIService(merged).RegisterOpenAPIVersionedService(r.URL.Path, &service)
	service.ServeHTTP(w, r)
	return nil
}

// only keeps the one handler that it is given.
type only struct{ http.Handler }

// Handle takes a handler.
func (o *only) Handle(_ string, h http.Handler) { o.Handler = h }
