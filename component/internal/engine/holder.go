package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/graph"
)

// holders finds out what keeps the members whose deletion does not end, as far as a message names them.
// It reads them: what a finalizer is called is known, and not who put it there.
func (p *pass) holders(ctx context.Context, plan graph.Plan) {
	for _, key := range named(causes(plan)) {
		m := p.members[key]
		live, found := p.Target.Cache.Get(liveKey(m.item))
		if !found || !live.Leaving {
			continue
		}
		now, err := p.Target.Client.Get(ctx, ref(m.item))
		switch {
		case err == nil && now.GetUID() == live.UID:
			m.holder = holder(now)
		case err != nil && !apierrors.IsNotFound(err):
			m.again = unwatched
		}
	}
}

// holder says what keeps an object that is being deleted. Empty means that nothing does any more.
func holder(live *unstructured.Unstructured) string {
	var held []string
	for _, f := range live.GetFinalizers() {
		text := "finalizer " + f
		if manager := setBy(live.GetManagedFields(), f); manager != "" {
			text += " (set by " + manager + ")"
		}
		held = append(held, text)
	}
	if isNamespace(live) {
		held = append(held, contents(live)...)
	}
	return strings.Join(held, ", ")
}

func isNamespace(live *unstructured.Unstructured) bool {
	return live.GetKind() == "Namespace" && live.GetAPIVersion() == "v1"
}

// setBy returns the field manager that owns a finalizer.
func setBy(entries []metav1.ManagedFieldsEntry, finalizer string) string {
	var managers []string
	for _, e := range entries {
		var set struct {
			Metadata struct {
				Finalizers map[string]any `json:"f:finalizers"`
			} `json:"f:metadata"`
		}
		if e.FieldsV1 == nil || json.Unmarshal(e.FieldsV1.GetRawBytes(), &set) != nil {
			continue
		}
		if _, owns := set.Metadata.Finalizers[fmt.Sprintf("v:%q", finalizer)]; owns {
			managers = append(managers, e.Manager)
		}
	}
	slices.Sort(managers)
	return strings.Join(slices.Compact(managers), ", ")
}

// contents says what is left in a namespace that is being deleted, in the words of its conditions.
func contents(live *unstructured.Unstructured) []string {
	list, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	var left []string
	for _, item := range list {
		c, _ := item.(map[string]any)
		if text, _ := c["message"].(string); c["status"] == "True" && text != "" {
			left = append(left, "its contents: "+strings.TrimSuffix(text, "."))
		}
	}
	slices.Sort(left)
	return left
}
