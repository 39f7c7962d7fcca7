// Package webhook makes admission webhooks for a kind from code that sets defaults and that validates.
//
// [New] takes a Defaulter, a [Validator] or both. Hand its result to an operator in operator.Options.Webhooks: the
// operator serves the webhooks, prints their configurations with its manifests, and keeps their certificate. Start with the
// example.
//
// Prefer defaults and CEL rules in the CRD where they suffice: they need no server. Conversion between versions is not here.
package webhook

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Validator says whether objects of type T are valid.
type Validator[T client.Object] interface {
	// Validate is called before an object is created, when old is nil, and before it is updated. It is not called for
	// updates of the status, of objects that are being deleted, and by the operator itself. Users read the error as it is,
	// so it should end with the way out; warnings are shown to them whether or not there is an error. It must have no side
	// effects.
	Validate(ctx context.Context, old, obj T) (warnings admission.Warnings, err error)
}

// Options are the webhooks of a kind. At least one of them is required.
type Options[T client.Object] struct {
	// Defaulter sets defaults in objects that are created or updated, before the validation. It is called under the same
	// conditions as [Validator], must have no side effects, and must change nothing if it is called again.
	Defaulter admission.Defaulter[T]
	// Validator refuses invalid objects.
	Validator Validator[T]
}

// Webhook are the webhooks of a kind.
type Webhook struct {
	obj                  client.Object
	defaulting, validate func(*runtime.Scheme) *admission.Webhook
}

// New makes the webhooks of the kind of T. It panics if o has neither a Defaulter nor a Validator.
func New[T client.Object](o Options[T]) *Webhook {
	if o.Defaulter == nil && o.Validator == nil {
		panic("webhook: New needs a Defaulter or a Validator")
	}
	w := &Webhook{obj: reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)}
	if o.Defaulter != nil {
		w.defaulting = func(s *runtime.Scheme) *admission.Webhook { return admission.WithDefaulter(s, o.Defaulter) }
	}
	if o.Validator != nil {
		w.validate = func(s *runtime.Scheme) *admission.Webhook {
			return admission.WithValidator[T](s, validator[T]{o.Validator})
		}
	}
	return w
}

// GroupVersionKind returns the kind in scheme.
func (w *Webhook) GroupVersionKind(scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(w.obj, scheme)
}

// Defaulting returns the handler of the mutating webhook, or nil if there is none.
func (w *Webhook) Defaulting(scheme *runtime.Scheme) *admission.Webhook {
	if w.defaulting == nil {
		return nil
	}
	return w.defaulting(scheme)
}

// Validating returns the handler of the validating webhook, or nil if there is none.
func (w *Webhook) Validating(scheme *runtime.Scheme) *admission.Webhook {
	if w.validate == nil {
		return nil
	}
	return w.validate(scheme)
}

// validator is a [Validator] as controller-runtime calls it.
type validator[T client.Object] struct{ author Validator[T] }

// ValidateCreate implements admission.Validator.
func (v validator[T]) ValidateCreate(ctx context.Context, obj T) (admission.Warnings, error) {
	var none T
	return v.author.Validate(ctx, none, obj)
}

// ValidateUpdate implements admission.Validator.
func (v validator[T]) ValidateUpdate(ctx context.Context, old, obj T) (admission.Warnings, error) {
	return v.author.Validate(ctx, old, obj)
}

// ValidateDelete implements admission.Validator. No rule sends deletions.
func (validator[T]) ValidateDelete(context.Context, T) (admission.Warnings, error) { return nil, nil }
