// Package transform changes what a [component.Generator] is given and what it returns: [New] wraps one, and takes
// transformers of its parameters and of its objects. Its names are those of component-operator-runtime.
//
// Renderers of kinds with a typed spec need less: the function that makes the values is the transformer of parameters, and
// [component.Chain] adds transformers of objects.
package transform
