package prune

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/internal/apply"
)

// pageSize is how many objects are listed at a time, and mostNamed how many a message names.
const (
	pageSize  = 500
	mostNamed = 3
)

// Found are objects of a type.
type Found struct {
	Type
	Count int
	first []string
	// version is that of the list.
	version string
}

// String returns "2 objects of kind Baz (a/x, a/y)".
func (f Found) String() string {
	names := strings.Join(f.first, ", ")
	if f.Count > len(f.first) {
		names += ", ..."
	}
	noun := "objects"
	if f.Count == 1 {
		noun = "object"
	}
	return fmt.Sprintf("%d %s of kind %s (%s)", f.Count, noun, f.Kind, names)
}

// Foreign finds the objects of a type that are not among one's own. It goes by each object, not by a
// selector: labels are copied.
func Foreign(ctx context.Context, c *apply.Client, t Type, own func(metav1.Object) bool) (Found, error) {
	found := Found{Type: t}
	for page := ""; ; {
		list, err := c.Metadata(ctx, t.path(), pageSize, page)
		if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			return found, nil
		}
		if err != nil {
			return found, fmt.Errorf("list objects of kind %s: %w", t.Kind, err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			if own(o) {
				continue
			}
			if found.Count++; found.Count <= mostNamed {
				found.first = append(found.first, strings.TrimPrefix(o.Namespace+"/"+o.Name, "/"))
			}
		}
		found.version = list.ResourceVersion
		if page = list.Continue; page == "" {
			return found, nil
		}
	}
}
