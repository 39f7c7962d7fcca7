package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	admissionregistrationclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// ReadWebhooks returns the webhook configurations in the YAML and JSON files of all folders of some file
// systems. Documents of other kinds are skipped. A nil file system holds none, and of those with the same name
// the first counts.
func ReadWebhooks(files ...fs.FS) ([]runtime.Object, error) {
	var all []runtime.Object
	seen := map[string]bool{}
	for _, f := range files {
		if f == nil {
			continue
		}
		err := documents(f, func(kind metav1.TypeMeta, document []byte) error {
			o := newConfiguration(kind)
			if o == nil {
				return nil
			}
			if err := sigsyaml.UnmarshalStrict(document, o); err != nil {
				return err
			}
			if id := kind.Kind + "/" + o.GetName(); !seen[id] {
				seen[id] = true
				all = append(all, o)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("kubesim: read webhook configurations: %w", err)
		}
	}
	return all, nil
}

// newConfiguration returns an empty object if a document holds a webhook configuration, else nil.
func newConfiguration(kind metav1.TypeMeta) interface {
	runtime.Object
	metav1.Object
} {
	switch {
	case kind.APIVersion != admissionregistrationv1.SchemeGroupVersion.String():
		return nil
	case kind.Kind == "MutatingWebhookConfiguration":
		return &admissionregistrationv1.MutatingWebhookConfiguration{}
	case kind.Kind == "ValidatingWebhookConfiguration":
		return &admissionregistrationv1.ValidatingWebhookConfiguration{}
	}
	return nil
}

// EncodeWebhooks returns webhook configurations as clusters store them that have them from the start. They are
// made as a user would, so that a wrong one is refused as it is by a cluster.
func (s *Server) EncodeWebhooks(configurations []runtime.Object) ([]store.Stored, error) {
	client, err := admissionregistrationclient.NewForConfig(inner{s, store.New()}.config())
	if err != nil {
		return nil, err
	}
	ctx := context.Background() //nolint:forbidigo // a server is made for many tests and ends with none of them
	var all []store.Stored
	var errs []error
	for _, c := range configurations {
		var stored store.Stored
		switch c := c.(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			made, err := client.MutatingWebhookConfigurations().Create(ctx, clean(c.DeepCopy()), metav1.CreateOptions{})
			if err != nil {
				errs = append(errs, fmt.Errorf("kubesim: install MutatingWebhookConfiguration %s: %w", c.Name, err))
				continue
			}
			stored, err = seed(mutatingResource, clean(made))
			errs = append(errs, err)
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			made, err := client.ValidatingWebhookConfigurations().Create(ctx, clean(c.DeepCopy()), metav1.CreateOptions{})
			if err != nil {
				errs = append(errs, fmt.Errorf("kubesim: install ValidatingWebhookConfiguration %s: %w", c.Name, err))
				continue
			}
			stored, err = seed(validatingResource, clean(made))
			errs = append(errs, err)
		}
		all = append(all, stored)
	}
	return all, errors.Join(errs...)
}

// clean returns an object without what a cluster gave it.
func clean[T metav1.Object](o T) T {
	o.SetResourceVersion("")
	o.SetUID("")
	o.SetManagedFields(nil)
	return o
}
