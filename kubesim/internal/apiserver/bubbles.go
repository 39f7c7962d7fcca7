package apiserver

import (
	"reflect"
	"runtime"
	"slices"
	"strings"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// unhurry takes out what slows down whoever reports errors: it remembers when the last one
// was, by the real clock at first, and would let the first of a bubble, where it is the year
// 2000, sleep until that time. It is part of every program with client-go.
func unhurry() {
	//nolint:reassign // there is no other way to take one out
	utilruntime.ErrorHandlers = slices.DeleteFunc(slices.Clone(utilruntime.ErrorHandlers), func(h utilruntime.ErrorHandler) bool {
		f := runtime.FuncForPC(reflect.ValueOf(h).Pointer())
		return f != nil && strings.Contains(f.Name(), "backoffError")
	})
}
