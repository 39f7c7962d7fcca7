package apiserver

import (
	"fmt"
	"net/http"
	"reflect"
	"sync/atomic"
	"unsafe"

	"k8s.io/apimachinery/pkg/util/waitgroup"
)

// leaveBubble lets a handler of custom resources be used in another bubble.
//
// What it keeps for each CRD costs 5 to 20 ms to make and has one thing that belongs to a
// bubble: the group that counts requests under way, which the runtime binds to the bubble of
// the first request and never lets go. So each gets a new one. The handler offers no
// way to reach it; should a new version of Kubernetes rename the fields, this says so.
func leaveBubble(handler http.Handler) error {
	storage := reflect.ValueOf(handler).Elem().FieldByName("customStorage")
	if !storage.IsValid() || storage.Type() != reflect.TypeFor[atomic.Value]() {
		return fmt.Errorf("kubesim: %T of this Kubernetes version has no customStorage; kubesim must be adapted", handler)
	}
	infos := reflect.ValueOf((*atomic.Value)(unsafe.Pointer(storage.UnsafeAddr())).Load()) //nolint:gosec // the type was compared above
	for _, uid := range infos.MapKeys() {
		group := infos.MapIndex(uid).Elem().FieldByName("waitGroup")
		if !group.IsValid() || group.Type() != reflect.TypeFor[*waitgroup.SafeWaitGroup]() {
			return fmt.Errorf("kubesim: %s of this Kubernetes version has no waitGroup; kubesim must be adapted", infos.Type())
		}
		*(**waitgroup.SafeWaitGroup)(unsafe.Pointer(group.UnsafeAddr())) = &waitgroup.SafeWaitGroup{} //nolint:gosec // so was this one
	}
	return nil
}
