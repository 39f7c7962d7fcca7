package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/internal/fingerprint"
)

// Seen is what a replacement must know of the object that it replaces.
type Seen struct {
	UID        types.UID
	Version    string
	Finalizers []string
	// PlainStatus: its status is written with the object, because its kind has no status subresource.
	PlainStatus bool
	// Live is the object itself, if it is known.
	Live *unstructured.Unstructured
}

// SeenIn returns what a replacement must know of an object.
func SeenIn(live *unstructured.Unstructured) Seen {
	return Seen{UID: live.GetUID(), Version: live.GetResourceVersion(), Finalizers: live.GetFinalizers(), Live: live}
}

// Post creates the object of a manifest. The error is [ErrExists] if there is an object of that name.
func (c *Client) Post(ctx context.Context, m *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(m.Object)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	path, err := c.collection(RefOf(m))
	if err != nil {
		return nil, err
	}
	live, err := answer(c.requests.Post().AbsPath(path).Body(data).Param("fieldManager", c.manager).Do(ctx))
	if apierrors.IsAlreadyExists(err) {
		return nil, ErrExists
	}
	return live, err
}

// Replace replaces an object with its manifest. Finalizers stay, and so does what the API server and its
// controllers set once and nobody may change. If somebody wrote since the object was seen, it is read and
// replaced as it is now. The status stays, too: it is its controller's, and a kind without the status
// subresource has no other place for it. keep are further values that stay. The error is [ErrReplaced] if the
// object is not there any more.
func (c *Client) Replace(ctx context.Context, m *unstructured.Unstructured, seen Seen, keep ...fingerprint.Path) (*unstructured.Unstructured, error) {
	ref := RefOf(m)
	path, err := c.path(ref)
	if err != nil {
		return nil, err
	}
	keep = append(keep, fixed(m.GroupVersionKind().GroupKind())...)
	for try := 1; ; try++ {
		if seen.Live == nil && (len(keep) > 0 || seen.PlainStatus) || try > 1 {
			live, err := c.Get(ctx, ref)
			if err != nil {
				return nil, replaced(err)
			}
			if live.GetUID() != seen.UID {
				return nil, fmt.Errorf("%w: it has another uid", ErrReplaced)
			}
			seen = SeenIn(live)
		}
		data, err := json.Marshal(c.replacement(m, seen, keep).Object)
		if err != nil {
			return nil, fmt.Errorf("encode: %w", err)
		}
		live, err := answer(c.requests.Put().AbsPath(path).Body(data).Param("fieldManager", c.manager).Do(ctx))
		if !apierrors.IsConflict(err) || try == attempts {
			return live, replaced(err)
		}
	}
}

// replacement is what an object is replaced with. component-operator-runtime puts its name on definitions as a finalizer,
// which is the manager's and goes.
func (c *Client) replacement(m *unstructured.Unstructured, seen Seen, keep []fingerprint.Path) *unstructured.Unstructured {
	out := m.DeepCopy()
	out.SetUID(seen.UID)
	out.SetResourceVersion(seen.Version)
	finalizers := slices.DeleteFunc(slices.Clone(seen.Finalizers), func(f string) bool { return f == c.manager })
	for _, f := range m.GetFinalizers() {
		if !slices.Contains(finalizers, f) {
			finalizers = append(finalizers, f)
		}
	}
	if len(finalizers) > 0 {
		out.SetFinalizers(finalizers)
	}
	if seen.Live == nil {
		return out
	}
	for _, path := range slices.Concat(keep, []fingerprint.Path{{"f:status"}}) { // the server ignores a status with a subresource
		fingerprint.Carry(seen.Live.Object, out.Object, path)
	}
	return out
}

// fixed are values that the API server or its controllers set and that must not be missing afterwards.
// Where the server adds them to an update by itself, as in Services, they are not listed.
func fixed(k schema.GroupKind) []fingerprint.Path {
	switch k {
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		return []fingerprint.Path{{"f:spec", "f:volumeName"}, {"f:spec", "f:storageClassName"}, {"f:spec", "f:volumeMode"}}
	case schema.GroupKind{Kind: "PersistentVolume"}:
		return []fingerprint.Path{{"f:spec", "f:claimRef"}}
	case schema.GroupKind{Kind: "Namespace"}:
		return []fingerprint.Path{{"f:spec"}}
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		paths := []fingerprint.Path{{"f:spec", "f:selector"}, {"f:spec", "f:template", "f:metadata"}}
		for _, label := range []string{"batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "controller-uid", "job-name"} {
			paths = append(paths, fingerprint.Path{"f:spec", "f:template", "f:metadata", "f:labels", "f:" + label})
		}
		return paths
	}
	return nil
}

// without returns a list without some of its elements, and whether it had any of them.
func without(list, drop []string) (left []any, changed bool) {
	left = []any{}
	for _, s := range list {
		if slices.Contains(drop, s) {
			changed = true
			continue
		}
		left = append(left, s)
	}
	return left, changed
}

// trial is the name of objects that are never stored.
const trial = "trial"

// Immutable reports whether an object that refuses its manifest as invalid would accept it if it were
// created again: the API server refuses to replace it as well, where nothing is merged, and would accept
// the manifest as a new object. Nothing is changed.
func (c *Client) Immutable(ctx context.Context, m *unstructured.Unstructured, seen Seen) (bool, error) {
	live, err := c.Get(ctx, RefOf(m))
	if err != nil || live.GetUID() != seen.UID {
		return false, err
	}
	path, err := c.path(RefOf(m))
	if err != nil {
		return false, err
	}
	put, err := json.Marshal(c.replacement(m, SeenIn(live), fixed(m.GroupVersionKind().GroupKind())).Object)
	if err != nil {
		return false, fmt.Errorf("encode: %w", err)
	}
	_, err = answer(c.requests.Put().AbsPath(path).Body(put).Param("fieldManager", c.manager).Param("dryRun", "All").Do(ctx))
	if !apierrors.IsInvalid(err) {
		return false, nil
	}
	other := m.DeepCopy()
	other.SetName(trial + "-" + string(seen.UID)[:min(8, len(seen.UID))])
	post, err := json.Marshal(other.Object)
	if err != nil {
		return false, fmt.Errorf("encode: %w", err)
	}
	collection, err := c.collection(RefOf(m))
	if err != nil {
		return false, err
	}
	_, err = answer(c.requests.Post().AbsPath(collection).Body(post).Param("fieldManager", c.manager).Param("dryRun", "All").Do(ctx))
	return err == nil, nil
}
