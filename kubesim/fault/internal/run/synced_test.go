package run

import (
	"testing"
	"testing/synctest"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// quickInformer has a goroutine that has always shown a new handler all that is there before anybody looks.
type quickInformer struct{ cache.Informer }

func (quickInformer) AddEventHandlerWithOptions(toolscache.ResourceEventHandler, toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return quickRegistration{}, nil
}

type quickRegistration struct {
	toolscache.ResourceEventHandlerRegistration
}

func (quickRegistration) HasSynced() bool { return true }

// TestHandlersTakeTime proves that how quick a goroutine is does not decide when a process begins to reconcile.
func TestHandlersTakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, err := patient(quickInformer{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		r, err := i.AddEventHandlerWithOptions(toolscache.ResourceEventHandlerFuncs{}, toolscache.HandlerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !toolscache.WaitForCacheSync(t.Context().Done(), r.HasSynced) {
			t.Error("the handler never syncs")
		}
		if took := time.Since(began); took != 100*time.Millisecond {
			t.Errorf("waiting for the handler took %v, want what an ordinary one takes", took)
		}
	})
}
