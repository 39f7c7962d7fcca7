package apiserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"

	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// builtinDiscovery is what is told of the built-in groups.
type builtinDiscovery struct {
	groups     metav1.APIGroupList
	resources  apidiscoveryv2.APIGroupDiscoveryList
	serializer runtime.NegotiatedSerializer // of resources
}

func newBuiltinDiscovery(core http.Handler, told *announcements) (builtinDiscovery, error) {
	b := builtinDiscovery{resources: apidiscoveryv2.APIGroupDiscoveryList{Items: told.groups}, serializer: told.serializer}
	//nolint:forbidigo // a server is made for many tests and ends with none of them
	r, err := http.NewRequestWithContext(store.With(context.Background(), store.New()), http.MethodGet, "/apis", http.NoBody)
	if err != nil {
		return b, err
	}
	w := &recorder{header: http.Header{}, code: http.StatusOK}
	core.ServeHTTP(w, r)
	return b, json.Unmarshal(w.buffer.Bytes(), &b.groups)
}

// announcements collects what the generic server installs, in that order. The real collector
// logs each group, which nobody wants in a test.
type announcements struct {
	groups     []apidiscoveryv2.APIGroupDiscovery
	serializer runtime.NegotiatedSerializer
}

var _ aggregated.ResourceManager = &announcements{}

func newAnnouncements() (*announcements, error) {
	scheme := runtime.NewScheme()
	if err := apidiscoveryv2.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return &announcements{serializer: serializer.NewCodecFactory(scheme)}, nil
}

// AddGroupVersion takes note of a version of a group.
func (a *announcements) AddGroupVersion(group string, v apidiscoveryv2.APIVersionDiscovery) {
	i := slices.IndexFunc(a.groups, func(g apidiscoveryv2.APIGroupDiscovery) bool { return g.Name == group })
	if i < 0 {
		i = len(a.groups)
		a.groups = append(a.groups, apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: group}})
	}
	a.groups[i].Versions = append(a.groups[i].Versions, v)
}

// What is installed stays as it is.

func (a *announcements) SetGroupVersionPriority(metav1.GroupVersion, int, int)   {}
func (a *announcements) RemoveGroup(string)                                      {}
func (a *announcements) RemoveGroupVersion(metav1.GroupVersion)                  {}
func (a *announcements) SetGroups([]apidiscoveryv2.APIGroupDiscovery)            {}
func (a *announcements) WithSource(aggregated.Source) aggregated.ResourceManager { return a }
func (a *announcements) AddInvalidationCallback(func())                          {}
func (a *announcements) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	serveGroups(&apidiscoveryv2.APIGroupDiscoveryList{Items: a.groups}, a.serializer, w, r)
}

func serveGroups(list *apidiscoveryv2.APIGroupDiscoveryList, by runtime.NegotiatedSerializer, w http.ResponseWriter, r *http.Request) {
	text, err := json.Marshal(list)
	if err != nil {
		panic(err) // it is JSON by nature
	}
	hash := sha256.Sum256(text)
	aggregated.ServeHTTPWithETag(list, hex.EncodeToString(hash[:]), apidiscoveryv2.SchemeGroupVersion, by, w, r)
}

// discover answers requests for what there is if the answer depends on the cluster, and reports
// whether it did.
func (s *Server) discover(db *store.DB, w http.ResponseWriter, r *http.Request) bool {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if r.Method != http.MethodGet || path[0] != "apis" || len(path) > 3 {
		return false
	}
	all := definitionsOf.Of(db)
	switch len(path) {
	case 1:
		s.discoverAll(all, w, r)
		return true
	case 2:
		group, ok := all.group(path[1])
		if ok {
			discovery.NewAPIGroupHandler(crdserver.Codecs, group).ServeHTTP(w, r)
		}
		return ok
	}
	gv := schema.GroupVersion{Group: path[1], Version: path[2]}
	if s.core.serves[gv] || !all.has(gv) {
		return false
	}
	discovery.NewAPIVersionHandler(crdserver.Codecs, gv, discovery.APIResourceListerFunc(func() []metav1.APIResource {
		return all.flat(gv)
	})).ServeHTTP(w, r)
	return true
}

// discoverAll lists all groups, with their resources if the client understands that.
func (s *Server) discoverAll(all definitions, w http.ResponseWriter, r *http.Request) {
	built := s.core.discovery
	media, _ := negotiation.NegotiateMediaTypeOptions(r.Header.Get("Accept"), built.serializer.SupportedMediaTypes(), aggregated.DiscoveryEndpointRestrictions)
	if media.Convert == nil || media.Convert.GroupVersion() != apidiscoveryv2.SchemeGroupVersion {
		list := built.groups.DeepCopy()
		for _, name := range all.groups() {
			group, _ := all.group(name)
			list.Groups = append(list.Groups, group)
		}
		responsewriters.WriteObjectNegotiated(crdserver.Codecs, negotiation.DefaultEndpointRestrictions, schema.GroupVersion{}, w, r, http.StatusOK, list, false)
		return
	}
	list := built.resources.DeepCopy()
	for _, name := range all.groups() {
		group, _ := all.group(name)
		found := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, v := range group.Versions {
			found.Versions = append(found.Versions, apidiscoveryv2.APIVersionDiscovery{
				Version: v.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent,
				Resources: all.resources(schema.GroupVersion{Group: name, Version: v.Version}),
			})
		}
		list.Items = append(list.Items, found)
	}
	serveGroups(list, built.serializer, w, r)
}

// groups are the groups that have something to serve, sorted.
func (all definitions) groups() []string {
	var names []string
	for _, d := range all {
		if d.served() && slices.ContainsFunc(d.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Served }) {
			names = append(names, d.Spec.Group)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// group lists the served versions of a group, the most stable and newest first.
func (all definitions) group(name string) (metav1.APIGroup, bool) {
	group := metav1.APIGroup{Name: name}
	for _, d := range all {
		if d.Spec.Group != name || !d.served() {
			continue
		}
		for _, v := range d.Spec.Versions {
			found := metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + v.Name, Version: v.Name}
			if v.Served && !slices.Contains(group.Versions, found) {
				group.Versions = append(group.Versions, found)
			}
		}
	}
	if len(group.Versions) == 0 {
		return group, false
	}
	slices.SortFunc(group.Versions, func(a, b metav1.GroupVersionForDiscovery) int {
		return version.CompareKubeAwareVersionStrings(b.Version, a.Version)
	})
	group.PreferredVersion = group.Versions[0]
	return group, true
}

// resources describes what is served in a version of a group.
func (all definitions) resources(gv schema.GroupVersion) []apidiscoveryv2.APIResourceDiscovery {
	var found []apidiscoveryv2.APIResourceDiscovery
	for _, d := range all {
		if d.Spec.Group == gv.Group && d.served() && apihelpers.HasServedCRDVersion(d.CustomResourceDefinition, gv.Version) {
			found = append(found, d.resource(gv))
		}
	}
	slices.SortFunc(found, func(a, b apidiscoveryv2.APIResourceDiscovery) int { return strings.Compare(a.Resource, b.Resource) })
	return found
}

func (d *definition) resource(gv schema.GroupVersion) apidiscoveryv2.APIResourceDiscovery {
	names := d.Status.AcceptedNames
	kind := &metav1.GroupVersionKind{Group: gv.Group, Version: gv.Version, Kind: names.Kind}
	r := apidiscoveryv2.APIResourceDiscovery{
		Resource: names.Plural, SingularResource: names.Singular, Scope: apidiscoveryv2.ScopeCluster, ResponseKind: kind,
		Verbs:      metav1.Verbs{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"},
		ShortNames: names.ShortNames, Categories: names.Categories,
	}
	if d.Spec.Scope == apiextensionsv1.NamespaceScoped {
		r.Scope = apidiscoveryv2.ScopeNamespace
	}
	if d.DeletionTimestamp != nil {
		r.Verbs = metav1.Verbs{"delete", "deletecollection", "get", "list", "watch"}
	}
	sub, err := apihelpers.GetSubresourcesForVersion(d.CustomResourceDefinition, gv.Version)
	if err != nil || sub == nil {
		return r
	}
	add := func(name string, kind *metav1.GroupVersionKind) {
		r.Subresources = append(r.Subresources, apidiscoveryv2.APISubresourceDiscovery{
			Subresource: name, ResponseKind: kind, Verbs: metav1.Verbs{"get", "patch", "update"},
		})
	}
	if sub.Status != nil {
		add("status", kind)
	}
	if sub.Scale != nil {
		add("scale", &metav1.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"})
	}
	return r
}

// flat is the older form of the same.
func (all definitions) flat(gv schema.GroupVersion) []metav1.APIResource {
	var flat []metav1.APIResource
	for _, r := range all.resources(gv) {
		stored, _ := apihelpers.GetCRDStorageVersion(all.byName(r.Resource + "." + gv.Group).CustomResourceDefinition)
		of := metav1.APIResource{
			Name: r.Resource, SingularName: r.SingularResource, Namespaced: r.Scope == apidiscoveryv2.ScopeNamespace,
			Kind: r.ResponseKind.Kind, Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
			StorageVersionHash: discovery.StorageVersionHash(gv.Group, stored, r.ResponseKind.Kind),
		}
		flat = append(flat, of)
		for _, sub := range r.Subresources {
			s := metav1.APIResource{Name: r.Resource + "/" + sub.Subresource, Namespaced: of.Namespaced, Kind: sub.ResponseKind.Kind, Verbs: sub.Verbs}
			if sub.ResponseKind.Group != r.ResponseKind.Group {
				s.Group, s.Version = sub.ResponseKind.Group, sub.ResponseKind.Version
			}
			flat = append(flat, s)
		}
	}
	return flat
}
