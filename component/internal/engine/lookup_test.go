package engine

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/component/internal/projection"
)

// TestLateLookup: a renderer that was abandoned looks nothing up. It would add a watch that nobody gives up. The pass
// has no cache, so that a lookup that is not refused panics.
func TestLateLookup(t *testing.T) {
	t.Parallel()
	l := &lookups{pass: &pass{}, taken: map[projection.Key]lookup{}}
	l.end()
	_, err := l.Object(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, types.NamespacedName{Namespace: "shop", Name: "db"})
	if !errors.Is(err, errLookupLate) || len(l.all()) > 0 {
		t.Errorf("%v, %v taken, want %v", err, l.all(), errLookupLate)
	}
}
