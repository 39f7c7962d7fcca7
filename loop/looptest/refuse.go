package looptest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// with returns a request with what it has besides its object. What is not supported is refused.
func (r request) with(query url.Values) (request, error) {
	r.owner, r.force = query.Get("fieldManager"), query.Get("force") == "true"
	r.dryRun = query.Has("dryRun")
	var err, other error
	r.selector, err = labels.Parse(query.Get("labelSelector"))
	r.fields, other = fields.ParseSelector(query.Get("fieldSelector"))
	if err = errors.Join(err, other); err != nil {
		return r, apierrors.NewBadRequest(err.Error())
	}
	for _, f := range r.fields.Requirements() {
		if f.Field != "metadata.name" && f.Field != "metadata.namespace" {
			return r, apierrors.NewBadRequest(fmt.Sprintf(
				"looptest selects by metadata.name and metadata.namespace, not by %s; test this on an API server, see package testenv", f.Field))
		}
	}
	if r.Verb != "delete" || len(r.body) == 0 {
		return r, nil
	}
	var o metav1.DeleteOptions
	if err := utiljson.Unmarshal(r.body, &o); err != nil {
		return r, apierrors.NewBadRequest(err.Error())
	}
	r.dryRun = r.dryRun || len(o.DryRun) > 0
	if o.PropagationPolicy != nil && *o.PropagationPolicy == metav1.DeletePropagationOrphan {
		return r, apierrors.NewBadRequest("looptest does not orphan dependents; test the propagation policy Orphan on an API server, see package testenv")
	}
	return r, nil
}

// selects reports whether a request for several objects asks for one.
func (r request) selects(o *unstructured.Unstructured) bool {
	return (r.Namespace == "" || r.Namespace == o.GetNamespace()) && r.selector.Matches(labels.Set(o.GetLabels())) &&
		r.fields.Matches(fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace()})
}

// scoped refuses an object that has a namespace and must not, or the reverse.
func (k kinds) scoped(kind schema.GroupVersionKind, o client.Object) error {
	mapping, err := k.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
	switch {
	case namespaced && o.GetNamespace() == "":
		return apierrors.NewBadRequest(fmt.Sprintf(
			"the %s %q has no namespace; give it one, or, if its kind is cluster-scoped, set looptest.Cluster.CRDs to the CRDs that say so", kind.Kind, o.GetName()))
	case !namespaced && o.GetNamespace() != "":
		return apierrors.NewBadRequest(fmt.Sprintf("the %s %q is cluster-scoped, and has the namespace %q; leave that out", kind.Kind, o.GetName(), o.GetNamespace()))
	}
	return nil
}

// validate returns why an API server refuses to replace an object by another, as far as metadata goes; before is nil for a new one.
func validate(before, after *unstructured.Unstructured) error {
	at, kind := field.NewPath("metadata"), after.GroupVersionKind()
	var errs field.ErrorList
	if before == nil {
		errs = validation.ValidateObjectMetaAccessor(after, after.GetNamespace() != "", nameRule(kind), at)
	} else {
		errs = validation.ValidateOwnerReferences(after.GetOwnerReferences(), at.Child("ownerReferences"))
		errs = append(errs, validation.ValidateFinalizers(after.GetFinalizers(), at.Child("finalizers"))...)
		if before.GetDeletionTimestamp() != nil {
			errs = append(errs, validation.ValidateNoNewFinalizers(after.GetFinalizers(), before.GetFinalizers(), at.Child("finalizers"))...)
		}
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(kind.GroupKind(), after.GetName(), errs)
	}
	return nil
}

func nameRule(kind schema.GroupVersionKind) validation.ValidateNameFunc {
	switch {
	case kind.Group == rbacv1.GroupName:
		return func(name string, _ bool) []string { return content.IsPathSegmentName(name) }
	case kind == corev1.SchemeGroupVersion.WithKind("Namespace"):
		return validation.ValidateNamespaceName
	case kind == corev1.SchemeGroupVersion.WithKind("Service"):
		return validation.NameIsDNS1035Label
	}
	return validation.NameIsDNSSubdomain
}

// unchanged reports whether a write changed nothing but the version and the times of managers of fields.
func unchanged(before, after *unstructured.Unstructured) bool {
	if before == nil || after == nil {
		return false
	}
	bare := func(o *unstructured.Unstructured) map[string]any {
		o = o.DeepCopy()
		o.SetResourceVersion("")
		managers := o.GetManagedFields()
		for i := range managers {
			managers[i].Time = nil
		}
		o.SetManagedFields(managers)
		return o.Object
	}
	return reflect.DeepEqual(bare(before), bare(after))
}

// stored returns an object as the fake client has it; nil if there is none.
func (s *server) stored(ctx context.Context, id objectID) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(id.kind)
	if err := s.objects.Get(ctx, id.NamespacedName, o); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return o, nil
}

// put replaces an object by o, which may be nil, without a new version.
func (s *server) put(id objectID, o *unstructured.Unstructured) error {
	resource, _ := meta.UnsafeGuessKindToResource(id.kind) // as the fake client does
	if err := client.IgnoreNotFound(s.tracker.Delete(resource, id.Namespace, id.Name)); err != nil || o == nil {
		return err
	}
	typed, err := s.scheme.New(id.kind)
	if err != nil {
		return err
	}
	obj, err := asForm(typed, o)
	if err != nil {
		return err
	}
	return s.tracker.Add(obj)
}
