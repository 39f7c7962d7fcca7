package apiserver

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A mapper made from discovery knows a list as a kind of its own, with the scope of its elements.
func TestMapperKnowsLists(t *testing.T) {
	server, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]meta.RESTScopeName{
		"DaemonSetList": meta.RESTScopeNameNamespace, "DaemonSet": meta.RESTScopeNameNamespace,
	} {
		got, err := server.Mapper().RESTMapping(schema.GroupKind{Group: "apps", Kind: kind})
		if err != nil || got.Scope.Name() != want {
			t.Errorf("%s: got %+v, %v, want scope %q", kind, got, err, want)
		}
	}
	if kind, err := server.Mapper().KindFor(schema.GroupVersionResource{Group: "apps", Resource: "daemonsets"}); err != nil || kind.Kind != "DaemonSet" {
		t.Errorf("daemonsets are of kind %s, %v", kind, err)
	}
}
