package crdcheck

import (
	"errors"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// All returns what [Defaults] and [References] find in crd. Each path in except must be needed by one of them.
func All(crd *apiextensionsv1.CustomResourceDefinition, except ...string) error {
	e := exceptions{except, map[string]bool{}}
	return errors.Join(defaults(crd, e), references(crd, e), e.needless(crd.Name))
}

// exceptions are the paths of fields that are right nevertheless.
type exceptions struct {
	paths []string
	used  map[string]bool
}

// has reports whether the field at a path is an exception, which is then not needless.
func (e exceptions) has(path string) bool {
	is := slices.Contains(e.paths, path)
	if is {
		e.used[path] = true
	}
	return is
}

// needless returns the exceptions that nothing has used.
func (e exceptions) needless(crd string) error {
	var all []error
	for _, path := range e.paths {
		if !e.used[path] {
			all = append(all, fmt.Errorf("CRD %s: %s needs no exception; leave it out", crd, path))
		}
	}
	return errors.Join(all...)
}
