package kubesim_test

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"

	"github.com/trimtab-dev/trimtab/kubesim"
)

// Documents are made in one bubble and used in the next.
func TestOpenAPI(t *testing.T) {
	for range 2 {
		synctest.Test(t, testOpenAPI)
	}
	t.Run("outside a bubble", testOpenAPI)
}

func testOpenAPI(t *testing.T) {
	c, _ := newCluster(t)
	must(t, definitionClient(t, c).Create(t.Context(), lake(t)))
	d := discoverer(t, c)
	root := openapi3.NewRoot(d.OpenAPIV3())
	for name, test := range map[string]struct {
		why, schema string
		gv          schema.GroupVersion
	}{
		"core":     {"it is under another path", "io.k8s.api.core.v1.Secret", schema.GroupVersion{Version: "v1"}},
		"built in": {"the group has many kinds", "io.k8s.api.apps.v1.Deployment", schema.GroupVersion{Group: "apps", Version: "v1"}},
		"given":    {"the CRD was there from the start", "com.example.v1.Pond", schema.GroupVersion{Group: "example.com", Version: "v1"}},
		"created":  {"the CRD came later", "io.k8s.water.v1.Lake", schema.GroupVersion{Group: "water.k8s.io", Version: "v1"}},
	} {
		document, err := root.GVSpec(test.gv)
		if err != nil {
			t.Errorf("%s: %s: %v", name, test.why, err)
			continue
		}
		described := document.Components.Schemas[test.schema]
		if described == nil || len(described.Properties) == 0 {
			t.Errorf("%s: %s: version 3 does not describe %s", name, test.why, test.schema)
		}
	}
	all, err := d.OpenAPISchema()
	must(t, err)
	found := map[string]bool{}
	for _, definition := range all.GetDefinitions().GetAdditionalProperties() {
		found[definition.GetName()] = true
	}
	for _, name := range []string{"io.k8s.api.apps.v1.Deployment", "com.example.v1.Pond", "io.k8s.water.v1.Lake"} {
		if !found[name] {
			t.Errorf("version 2 lacks %s", name)
		}
	}
}

func discoverer(t *testing.T, c *kubesim.Cluster) *discovery.DiscoveryClient {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(c.Config())
	must(t, err)
	return d
}

func TestOpenAPIOfOneCluster(t *testing.T) {
	with, _ := newCluster(t)
	without := kubesim.New(t, kubesim.Options{})
	got := map[string][2]bool{}
	for _, path := range []string{"apis/apps/v1", "apis/example.com/v1", "apis/example.com/v2"} {
		served := func(c *kubesim.Cluster) bool {
			d := discoverer(t, c)
			_, err := d.RESTClient().Get().AbsPath("/openapi/v3/"+path).SetHeader("Accept", runtime.ContentTypeJSON).DoRaw(t.Context())
			if err != nil && !apierrors.IsNotFound(err) {
				t.Errorf("%s: %v; want it or that it is not found", path, err)
			}
			index, failed := d.OpenAPIV3().Paths()
			must(t, failed)
			if _, listed := index[path]; listed != (err == nil) {
				t.Errorf("%s: listed: %t; asking for it: %v", path, listed, err)
			}
			return err == nil
		}
		got[path] = [2]bool{served(with), served(without)}
	}
	want := map[string][2]bool{"apis/apps/v1": {true, true}, "apis/example.com/v1": {true, false}, "apis/example.com/v2": {false, false}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("documents of a cluster with ponds and of one without (-want +got):\n%s", diff)
	}
}
