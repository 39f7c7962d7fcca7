package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/trimtab-dev/trimtab/internal/fingerprint"
)

// Ref names an object.
type Ref struct {
	schema.GroupVersionKind
	types.NamespacedName
}

// RefOf returns the name of a manifest.
func RefOf(m *unstructured.Unstructured) Ref {
	return Ref{
		GroupVersionKind: m.GroupVersionKind(),
		NamespacedName:   types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()},
	}
}

// String returns "Deployment shop/web", as messages show it.
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// ErrExists is the error of a create that found an object.
var ErrExists = errors.New("the object exists")

// ErrReplaced is the error of a change to an object that is not the one meant: it was deleted, or deleted
// and created again by somebody else.
var ErrReplaced = errors.New("the object is not the one that was recorded")

// Client writes objects of one API server under one name.
type Client struct {
	requests rest.Interface
	mapper   meta.RESTMapper
	manager  string
}

// New returns a client for the API server of a configuration, whose fields are owned by manager.
func New(config *rest.Config, httpClient *http.Client, mapper meta.RESTMapper, manager string) (*Client, error) {
	config = dynamic.ConfigFor(config)
	config.GroupVersion = &schema.GroupVersion{}
	config.APIPath = "/"
	requests, err := rest.RESTClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("make a client for dependents: %w", err)
	}
	return &Client{requests: requests, mapper: mapper, manager: manager}, nil
}

// create is the resourceVersion of an apply that must not find an object: the API server creates the
// object, or answers with a conflict. It takes one request and no read.
const create = "1"

// Create creates the object of a manifest by server-side apply and returns it as the API server stored
// it. The error is [ErrExists] if there is an object of that name.
func (c *Client) Create(ctx context.Context, m *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	m = m.DeepCopy()
	m.SetResourceVersion(create)
	live, err := c.apply(ctx, m, Options{})
	if apierrors.IsConflict(err) {
		return nil, ErrExists
	}
	return live, err
}

// Options say how a manifest is applied.
type Options struct {
	// UID is that of the object to change. Without one, an object deleted meanwhile would be
	// created again.
	UID types.UID
	// Yield: if others own a field with another value, nothing is changed. The error is a
	// [ConflictError].
	Yield bool
	// Override: what kubectl and Helm own and is not in the manifest goes.
	Override bool
	// Leave are fields of others that are not taken over, whoever they are.
	Leave []fingerprint.Path
	// Adopt: the object was not the manager's before.
	Adopt bool
	// Reset: the object was without managedFields once, and the manifest is not the one that was
	// applied last.
	Reset bool
}

// Apply brings an object to a manifest by server-side apply. The error is [ErrReplaced] if the object is
// not there any more. It takes one request unless fields have to change hands.
func (c *Client) Apply(ctx context.Context, m *unstructured.Unstructured, o Options) (*unstructured.Unstructured, error) {
	m = m.DeepCopy()
	m.SetUID(o.UID)
	if o.Reset {
		if err := c.disown(ctx, RefOf(m), o.UID); err != nil {
			return nil, err
		}
	}
	live, err := c.applyServed(ctx, m, o)
	if apierrors.IsInvalid(err) && !isUIDRefused(err) {
		live, err = c.mend(ctx, m, o, err)
	}
	if err == nil {
		live, err = c.settle(ctx, m, live, o)
	}
	switch conflict := conflictIn(err); {
	case conflict != nil:
		return nil, conflict
	case apierrors.IsConflict(err) || isUIDRefused(err):
		return nil, fmt.Errorf("%w: %w", ErrReplaced, err)
	}
	return live, err
}

func (c *Client) apply(ctx context.Context, m *unstructured.Unstructured, o Options) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(m.Object)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	path, err := c.path(RefOf(m))
	if err != nil {
		return nil, err
	}
	request := c.requests.Patch(types.ApplyPatchType).AbsPath(path).Body(data).
		Param("fieldManager", c.manager).Param("force", strconv.FormatBool(!o.Yield))
	return answer(request.Do(ctx))
}

// Get reads an object from the API server.
func (c *Client) Get(ctx context.Context, r Ref) (*unstructured.Unstructured, error) {
	path, err := c.path(r)
	if err != nil {
		return nil, err
	}
	return answer(c.requests.Get().AbsPath(path).Do(ctx))
}

// Patch sends a merge patch.
func (c *Client) Patch(ctx context.Context, r Ref, patch map[string]any) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	path, err := c.path(r)
	if err != nil {
		return nil, err
	}
	request := c.requests.Patch(types.MergePatchType).AbsPath(path).Body(data).Param("fieldManager", c.manager)
	return answer(request.Do(ctx))
}

// Delete deletes the very object that has this uid and, unless it is empty, this version; what the object
// owns goes after it. It returns the object as far as its deletion has come, or nil if it is gone.
func (c *Client) Delete(ctx context.Context, r Ref, uid types.UID, version string) (*unstructured.Unstructured, error) {
	only := &metav1.Preconditions{UID: &uid}
	if version != "" {
		only.ResourceVersion = &version
	}
	data, err := json.Marshal(metav1.DeleteOptions{
		TypeMeta:          metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: "v1"},
		PropagationPolicy: new(metav1.DeletePropagationBackground), Preconditions: only,
	})
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	path, err := c.path(r)
	if err != nil {
		return nil, err
	}
	live, err := answer(c.requests.Delete().AbsPath(path).Body(data).Do(ctx))
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	case live.GetKind() == "Status" && live.GetAPIVersion() == "v1":
		return nil, nil
	}
	return live, nil
}

// answer decodes an object.
func answer(result rest.Result) (*unstructured.Unstructured, error) {
	data, err := raw(result)
	if err != nil {
		return nil, err
	}
	live := &unstructured.Unstructured{}
	if err := live.UnmarshalJSON(data); err != nil {
		return nil, fmt.Errorf("decode the answer: %w", err)
	}
	return live, nil
}

// raw returns the body of an answer. The error is what the API server says; that of Raw has no words.
func raw(result rest.Result) ([]byte, error) {
	data, err := result.Raw()
	if err != nil {
		return nil, result.Error()
	}
	return data, nil
}

// path is where an object is served.
func (c *Client) path(r Ref) (string, error) {
	path, err := c.collection(r)
	return path + "/" + r.Name, err
}

// collection is where the objects of a kind are served: those of a namespace, if there is one.
func (c *Client) collection(r Ref) (string, error) {
	mapping, err := c.mapper.RESTMapping(r.GroupKind(), r.Version)
	if err != nil {
		return "", fmt.Errorf("find the resource of %s: %w", r.Kind, err)
	}
	path := "/apis/" + r.Group + "/" + r.Version
	if r.Group == "" {
		path = "/api/" + r.Version
	}
	if mapping.Scope.Name() != meta.RESTScopeNameRoot && r.Namespace != "" {
		path += "/namespaces/" + r.Namespace
	}
	return path + "/" + mapping.Resource.Resource, nil
}
