package engine

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/desired"
	"github.com/trimtab-dev/trimtab/health"
	"github.com/trimtab-dev/trimtab/internal/fingerprint"
)

// TestOutlines: what is remembered of rendered objects is all but their manifests.
func TestOutlines(t *testing.T) {
	item := func(name string) api.InventoryItem {
		return api.InventoryItem{
			Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: name, ApplyOrder: 3, DeleteOrder: -2,
			Policies: api.Policies{UpdatePolicy: api.UpdatePolicyReplace}, DependsOn: []string{"/Namespace//shop"}, Digest: "digest of " + name,
			ManagedTypes: []api.TypeInfo{{Group: "g", Kind: "K"}},
		}
	}
	objects := []desired.Object{
		{Item: item("a"), Rank: 1, DeleteRank: 2, Managed: true, Hints: health.Hints{}},
		{Item: item("b"), Twin: "twin", Rank: 1, DeleteRank: 2, Managed: true},
		{Item: item("c"), Rank: 1, DeleteRank: 2, Purge: new(int16(4)), AcceptDataLoss: true, Warnings: []string{"old"}},
		{Item: item("d"), Rank: 7, Ignored: []fingerprint.Path{{}}, Unserved: true},
	}
	outlines := outlines(objects)
	if diff := cmp.Diff(objects, full(outlines), cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
		t.Errorf("objects (-rendered +remembered):\n%s", diff)
	}
	if outlines[0].shape != outlines[1].shape {
		t.Error("objects of the same shape do not share it")
	}
}
