// Package install reads objects from files and applies them, definitions first, as somebody does with kubectl who waits until
// new kinds are served.
package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/internal/manifest"
)

// Read returns the objects in files and folders, definitions first.
func Read(paths []string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	add := func(document []byte) error {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &u.Object); err != nil {
			return err
		}
		if len(u.Object) > 0 {
			all = append(all, u)
		}
		return nil
	}
	for _, path := range paths {
		before := len(all)
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, errors.Unwrap(err))
		}
		if info.IsDir() {
			err = manifest.Documents(os.DirFS(path), add)
		} else if data, readErr := os.ReadFile(path); readErr == nil {
			err = manifest.Split(data, add)
		} else {
			err = readErr
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Clean(path), err)
		}
		if len(all) == before {
			return nil, fmt.Errorf("%s: there is no object; name a file or a folder with objects in YAML or JSON", path)
		}
	}
	Sort(all)
	return all, nil
}

// Sort puts first what other objects need.
func Sort(all []*unstructured.Unstructured) {
	slices.SortStableFunc(all, func(a, b *unstructured.Unstructured) int { return order(a) - order(b) })
}

// order is 0 for what others need first.
func order(u *unstructured.Unstructured) int {
	switch u.GetKind() {
	case "CustomResourceDefinition", "Namespace":
		return 0
	}
	return 1
}

const (
	// servedWithin is more than an API server needs to serve a new kind, and to take its first objects.
	servedWithin = 2 * time.Minute
	// servedPoll is how often it is asked.
	servedPoll = 100 * time.Millisecond
)

// Client returns a client for objects of any kind.
func Client(cfg *rest.Config) (client.Client, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.WarningHandler = rest.NoWarnings{} // otherwise controller-runtime misses a logger, and says so with a stack
	return client.New(cfg, client.Options{})
}

// Apply applies objects, and waits for kinds that are not served yet. Objects without a namespace get "default".
func Apply(ctx context.Context, c client.Client, all []*unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, servedWithin)
	defer cancel()
	for _, u := range all {
		if err := applyOne(ctx, c, u); err != nil {
			return fmt.Errorf("apply %s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
	return nil
}

func applyOne(ctx context.Context, c client.Client, u *unstructured.Unstructured) error {
	tick := time.NewTicker(servedPoll)
	defer tick.Stop()
	for {
		err := tryApply(ctx, c, u)
		if !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) && !apierrors.IsServiceUnavailable(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

func tryApply(ctx context.Context, c client.Client, u *unstructured.Unstructured) error {
	namespaced, err := c.IsObjectNamespaced(u)
	if err != nil {
		return err
	}
	if namespaced && u.GetNamespace() == "" {
		u.SetNamespace(metav1.NamespaceDefault)
	}
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("trimtab"), client.ForceOwnership)
}
