package external

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trimtab-dev/trimtab/external/internal/record"
)

func TestMarks(t *testing.T) {
	obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "u1"}}
	kind := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Stream"}
	ours := Mark(record.MarkFor(obj, kind, "c1", 2).Labels())
	want := Mark{record.MarkCluster: "c1", record.MarkUID: "u1", record.MarkKind: "Stream.example.org", record.MarkNamespace: "shop", record.MarkName: "orders", record.MarkIncarnation: "2"}
	if diff := cmp.Diff(want, ours); diff != "" {
		t.Errorf("mark (-want +got):\n%s", diff)
	}
	tags := map[string]string{"team": "sales"}
	marked := ours.On(tags)
	if len(tags) != 1 || len(marked) != 7 {
		t.Errorf("tags %v, marked %v", tags, marked)
	}
	if diff := cmp.Diff(ours, MarkOf(marked)); diff != "" {
		t.Errorf("mark found again (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(tags, Unmark(marked)); diff != "" {
		t.Errorf("without mark (-want +got):\n%s", diff)
	}
	if MarkOf(tags) != nil || Unmark(nil) != nil {
		t.Error("a mark out of nothing")
	}
}
