package run

import (
	"context"
	"reflect"
	"runtime"
	"strings"
	"sync"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

type passKey struct{}

// running are the passes of one process that are under way, by goroutine. Its zero value has none.
type running struct {
	mu sync.Mutex
	of map[string]int
}

// begin notes that the calling goroutine reconciles, until the function that it returns is called.
func (r *running) begin(index int) (end func()) {
	id := goroutine()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[string]int{}
	}
	r.of[id] = index
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.of, id)
	}
}

// passOf returns the pass that a context belongs to, or else the calling goroutine: operators make calls
// with contexts of their own, and some clients take none.
func (r *running) passOf(ctx context.Context) int {
	if i, ok := ctx.Value(passKey{}).(int); ok {
		return i
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.of) == 0 {
		return history.Nobody
	}
	if i, ok := r.of[goroutine()]; ok {
		return i
	}
	return history.Nobody
}

// goroutine returns the number of the calling goroutine.
func goroutine() string {
	buf := make([]byte, 64) // "goroutine 7 [running]:"
	id, _, _ := strings.Cut(strings.TrimPrefix(string(buf[:runtime.Stack(buf, false)]), "goroutine "), " ")
	return id
}

// controllerIn returns the controller that a runnable is or embeds, as operators do that give a controller
// another method; the zero Value if there is none.
func controllerIn(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	if do := v.FieldByName("Do"); do.IsValid() && do.CanSet() {
		return v
	}
	for i := range v.NumField() {
		if f := v.Type().Field(i); !f.Anonymous || !f.IsExported() {
			continue
		}
		if c := controllerIn(v.Field(i)); c.IsValid() {
			return c
		}
	}
	return reflect.Value{}
}
