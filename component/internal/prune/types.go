package prune

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/desired"
	"github.com/trimtab-dev/trimtab/internal/apply"
)

// ErrUnserved is the error of a definition of which no version is served: nobody can say whether it has
// instances.
var ErrUnserved = errors.New("no version of it is served, so that its instances cannot be listed; serve a version again")

// Type is a type of objects as an API server serves it.
type Type struct {
	schema.GroupVersionKind
	Plural string
}

// path is where all objects of a type are.
func (t Type) path() string { return versionPath(t.GroupVersion()) + "/" + t.Plural }

func versionPath(v schema.GroupVersion) string {
	if v.Group == "" {
		return "/api/" + v.Version
	}
	return "/apis/" + v.Group + "/" + v.Version
}

// Defined returns the types that exist because of a CustomResourceDefinition or an APIService.
func Defined(ctx context.Context, c *apply.Client, definition *unstructured.Unstructured) ([]Type, error) {
	switch definition.GetKind() {
	case "CustomResourceDefinition":
		return custom(definition)
	case "APIService":
		version := schema.GroupVersion{Group: text(definition, "spec", "group"), Version: text(definition, "spec", "version")}
		if _, remote, _ := unstructured.NestedMap(definition.Object, "spec", "service"); !remote {
			return nil, nil // the API server itself answers, and goes on
		}
		return served(ctx, c, version, api.TypeInfo{Group: version.Group, Kind: "*"})
	}
	return nil, nil
}

// custom returns the type of a CustomResourceDefinition. All its versions have the same objects.
func custom(crd *unstructured.Unstructured) ([]Type, error) {
	if !established(crd) {
		return nil, nil // it has never been served
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		name, _ := version["name"].(string)
		if is, _ := version["served"].(bool); is {
			kind := schema.GroupVersionKind{Group: text(crd, "spec", "group"), Version: name, Kind: text(crd, "spec", "names", "kind")}
			return []Type{{kind, text(crd, "spec", "names", "plural")}}, nil
		}
	}
	return nil, ErrUnserved
}

func established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(item any) bool {
		c, _ := item.(map[string]any)
		return c["type"] == "Established" && c["status"] == "True"
	})
}

func text(u *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedString(u.Object, path...)
	return value
}

// Known returns the types that an API server serves of those that are named, which may contain "*".
func Known(ctx context.Context, c *apply.Client, types []api.TypeInfo) ([]Type, error) {
	if len(types) == 0 {
		return nil, nil
	}
	groups := &metav1.APIGroupList{}
	if err := c.Read(ctx, "/apis", groups); err != nil {
		return nil, fmt.Errorf("read which API groups are served: %w", err)
	}
	versions := []schema.GroupVersion{{Version: "v1"}}
	for _, g := range groups.Groups {
		versions = append(versions, schema.GroupVersion{Group: g.Name, Version: g.PreferredVersion.Version})
	}
	var all []Type
	for _, v := range versions {
		if !slices.ContainsFunc(types, func(t api.TypeInfo) bool {
			return desired.Manages([]api.TypeInfo{{Group: t.Group, Kind: "*"}}, schema.GroupKind{Group: v.Group})
		}) {
			continue
		}
		found, err := served(ctx, c, v, types...)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// served returns the types in a version of a group that are among those that are named.
func served(ctx context.Context, c *apply.Client, version schema.GroupVersion, types ...api.TypeInfo) ([]Type, error) {
	list := &metav1.APIResourceList{}
	err := c.Read(ctx, versionPath(version), list)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read which kinds %s has: %w", version, err)
	}
	var found []Type
	for _, r := range list.APIResources {
		kind := version.WithKind(r.Kind)
		if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") || !desired.Manages(types, kind.GroupKind()) {
			continue
		}
		found = append(found, Type{kind, r.Name})
	}
	return found, nil
}
