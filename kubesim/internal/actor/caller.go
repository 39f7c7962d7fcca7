package actor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/trimtab-dev/trimtab/kubesim/internal/apiserver"
)

// userAgent makes the name that managed fields show for the cluster's controllers.
const userAgent = "kube-controller-manager/v1.37.1"

// caller sends an actor's requests.
type caller struct{ transport http.RoundTripper }

// newCaller returns a caller for one of the cluster's own service accounts. They may do
// anything: a cluster holds no roles for them.
func newCaller(g *graph, account string) caller {
	who := &user.DefaultInfo{
		Name:   "system:serviceaccount:kube-system:" + account,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", user.AllAuthenticated, user.SystemPrivilegedGroup},
	}
	return caller{&apiserver.Transport{Server: g.server, Client: apiserver.Client{DB: g.db, User: who}}}
}

// urlOf returns where a kind's objects are, or one of them.
func urlOf(k apiserver.Kind, namespace, name, subresource string) string {
	url := "http://kubesim/api/" + k.Resource.Version
	if k.Resource.Group != "" {
		url = "http://kubesim/apis/" + k.Resource.Group + "/" + k.Resource.Version
	}
	if namespace != "" {
		url += "/namespaces/" + namespace
	}
	url += "/" + k.Resource.Resource
	if name != "" {
		url += "/" + name
	}
	if subresource != "" {
		url += "/" + subresource
	}
	return url
}

func (c caller) delete(ctx context.Context, n *node, policy metav1.DeletionPropagation) error {
	rev := fmt.Sprint(n.rev)
	return c.send(ctx, http.MethodDelete, urlOf(n.kind, n.Namespace, n.Name, ""), "application/json", deleteOptions(policy, &metav1.Preconditions{
		UID: &n.UID, ResourceVersion: &rev,
	}))
}

func (c caller) deleteAll(ctx context.Context, k apiserver.Kind, namespace string) error {
	return c.send(ctx, http.MethodDelete, urlOf(k, namespace, "", ""), "application/json",
		deleteOptions(metav1.DeletePropagationBackground, nil))
}

func deleteOptions(policy metav1.DeletionPropagation, pre *metav1.Preconditions) metav1.DeleteOptions {
	return metav1.DeleteOptions{
		TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions: pre, PropagationPolicy: &policy,
	}
}

// patchOwners writes an object's owner references. Custom resources know no strategic patch.
func (c caller) patchOwners(ctx context.Context, n *node, remain, changed []metav1.OwnerReference, removed []types.UID) error {
	url := urlOf(n.kind, n.Namespace, n.Name, "")
	if n.kind.Custom {
		return c.send(ctx, http.MethodPatch, url, string(types.MergePatchType), map[string]any{
			"metadata": map[string]any{"resourceVersion": fmt.Sprint(n.rev), "ownerReferences": remain},
		})
	}
	var refs []any
	for _, uid := range removed {
		refs = append(refs, map[string]any{"$patch": "delete", "uid": uid})
	}
	for _, ref := range changed {
		refs = append(refs, ref)
	}
	return c.send(ctx, http.MethodPatch, url, string(types.StrategicMergePatchType), map[string]any{
		"metadata": map[string]any{"uid": n.UID, "ownerReferences": refs},
	})
}

// removeFinalizer takes one finalizer from an object.
func (c caller) removeFinalizer(ctx context.Context, n *node, finalizer string) error {
	var left []string
	for _, f := range n.Finalizers {
		if f != finalizer {
			left = append(left, f)
		}
	}
	return c.send(ctx, http.MethodPatch, urlOf(n.kind, n.Namespace, n.Name, ""), string(types.MergePatchType), map[string]any{
		"metadata": map[string]any{"resourceVersion": fmt.Sprint(n.rev), "finalizers": left},
	})
}

func (c caller) send(ctx context.Context, method, url, contentType string, body any) (err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header = http.Header{"Content-Type": {contentType}, "Accept": {"application/json"}, "User-Agent": {userAgent}}
	answer, err := c.transport.RoundTrip(r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	if answer.StatusCode < http.StatusBadRequest {
		return nil
	}
	var status metav1.Status
	if text, err = io.ReadAll(answer.Body); err != nil {
		return err
	}
	if err := json.Unmarshal(text, &status); err != nil {
		return fmt.Errorf("%s %s: %s: %s", method, url, answer.Status, text)
	}
	return apierrors.FromObject(&status)
}

// overtaken drops errors that say only that the cluster is no longer as it was seen.
func overtaken(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
