// Package logs gives the logger of a reconciler its conventional name and keys, so that the lines of all
// controllers can be searched in the same way.
//
// [For] is for the GetLogger method of a reconciler of controller-runtime, and [About] adds the identity of
// its object. A Reconciler of package loop needs neither: its context and Run.Log have both already.
// Start with the example of For.
package logs

import (
	"context"
	"reflect"
	"strings"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// NoNamespace is the value of the key resource.namespace for a cluster-scoped object, so that a search for
// such objects does not depend on how an empty value is stored. It is no valid name of a namespace.
const NoNamespace = "no namespace"

// For returns the logger of one call of a reconciler. Its name is [Name] of the reconciler's type, and its values are those
// that controller-runtime has put into ctx: controller, reconcileID, namespace and name. Call it in each reconciliation and
// keep the result in a variable: a logger in a field of the reconciler would be shared by concurrent calls.
func For(ctx context.Context, reconciler any) logr.Logger {
	return logf.FromContext(ctx).WithName(Name(typeName(reconciler)))
}

// Name returns the name of the logger of a controller: "Controllers." and the controller's name. It is one
// name rather than two, because sinks differ in how they join names.
func Name(controller string) string { return "Controllers." + controller }

// About returns log with the seven keys of an object: resource.apiVersion, resource.kind, resource.name,
// resource.namespace, resource.resourceVersion, resource.generation and resource.uid. The kind is a
// parameter because objects of typed clients do not carry it. The namespace of a cluster-scoped object is
// [NoNamespace]. Put the result into the context, by logr.NewContext, for the code that the reconciler calls.
func About(log logr.Logger, kind schema.GroupVersionKind, obj metav1.Object) logr.Logger {
	namespace := obj.GetNamespace()
	if namespace == "" {
		namespace = NoNamespace
	}
	return log.WithValues(
		"resource.apiVersion", kind.GroupVersion().String(), "resource.kind", kind.Kind,
		"resource.name", obj.GetName(), "resource.namespace", namespace,
		"resource.resourceVersion", obj.GetResourceVersion(), "resource.generation", obj.GetGeneration(),
		"resource.uid", obj.GetUID())
}

// typeName returns the name of the type of v, or of what v points to, without type arguments.
func typeName(v any) string {
	t := reflect.TypeOf(v)
	if t == nil {
		return "nil"
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name, _, _ := strings.Cut(t.Name(), "[")
	return name
}
