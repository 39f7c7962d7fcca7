package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Accept headers for metadata. Servers that know none answer with whole objects.
const (
	acceptMetadata     = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
	acceptMetadataList = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
)

// Read reads what the API server answers at a path.
func (c *Client) Read(ctx context.Context, path string, into any) error {
	return decode(raw(c.requests.Get().AbsPath(path).SetHeader("Accept", "application/json").Do(ctx)))(into)
}

// List reads all objects of a kind in a namespace, or in all if it is empty, into the field items of a list.
func (c *Client) List(ctx context.Context, kind schema.GroupVersionKind, namespace string) (*unstructured.Unstructured, error) {
	path, err := c.collection(Ref{kind, types.NamespacedName{Namespace: namespace}})
	if err != nil {
		return nil, err
	}
	list, err := answer(c.requests.Get().AbsPath(path).Do(ctx))
	if err != nil {
		return nil, err
	}
	items, _ := list.Object["items"].([]any)
	for _, item := range items {
		if o, ok := item.(map[string]any); ok && o["kind"] == nil { // API servers leave it out for their own kinds
			o["apiVersion"], o["kind"] = kind.GroupVersion().String(), kind.Kind
		}
	}
	return list, nil
}

// Metadata reads a page of the metadata of all objects at a path.
func (c *Client) Metadata(ctx context.Context, path string, limit int, page string) (*metav1.PartialObjectMetadataList, error) {
	request := c.requests.Get().AbsPath(path).SetHeader("Accept", acceptMetadataList).Param("limit", strconv.Itoa(limit))
	if page != "" {
		request = request.Param("continue", page)
	}
	list := &metav1.PartialObjectMetadataList{}
	return list, decode(raw(request.Do(ctx)))(list)
}

// Watch watches the objects at a path since a version.
func (c *Client) Watch(ctx context.Context, path, version string) (watch.Interface, error) {
	return c.requests.Get().AbsPath(path).SetHeader("Accept", acceptMetadata).
		Param("watch", "true").Param("resourceVersion", version).Watch(ctx)
}

// Try asks whether the API server would create an object.
func (c *Client) Try(ctx context.Context, m *unstructured.Unstructured) error {
	data, err := json.Marshal(m.Object)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	path, err := c.collection(RefOf(m))
	if err != nil {
		return err
	}
	return c.requests.Post().AbsPath(path).Body(data).Param("dryRun", metav1.DryRunAll).Do(ctx).Error()
}

func decode(data []byte, err error) func(into any) error {
	return func(into any) error {
		if err != nil {
			return err
		}
		if err := json.Unmarshal(data, into); err != nil {
			return fmt.Errorf("decode the answer: %w", err)
		}
		return nil
	}
}
