package external

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/loop"
)

// attached is a client of the external API, and what it is a client of.
type attached[C any] struct {
	client C
	// endpoint is empty if the author does not tell endpoints apart.
	endpoint string
}

// attach makes clients whose endpoint is known. One whose endpoint cannot be told yet is kept
// for the next time, unless it was refused.
func attach[C any](connect func(context.Context) (C, error), endpoint func(context.Context, C) (string, error)) func(context.Context) (attached[C], error) {
	var mu sync.Mutex
	var kept *C
	return func(ctx context.Context) (attached[C], error) {
		mu.Lock()
		defer mu.Unlock()
		if kept == nil {
			c, err := connect(ctx)
			if err != nil || endpoint == nil {
				return attached[C]{client: c}, err
			}
			kept = &c
		}
		c := *kept
		name, err := endpoint(ctx, c)
		if err != nil {
			if classify(err, nil, false).class == ClassDenied {
				kept = nil
			}
			return attached[C]{}, fmt.Errorf("ask which endpoint this is: %w", err)
		}
		kept = nil
		return attached[C]{client: c, endpoint: name}, nil
	}
}

// here is where the operator and the object are, but for the endpoint.
func (e *engine[T, C, O]) here(ctx context.Context, r *loop.Run[T]) (place, error) {
	uid, err := e.cluster.get(ctx, r.Live())
	if err != nil {
		return place{}, err
	}
	return place{Cluster: uid, Installation: r.Terms().Installation, Object: client.ObjectKeyFromObject(r.Obj).String()}, nil
}

// Selects leaves an object alone that another installation of the operator works on.
func (e *engine[T, C, O]) Selects(ctx context.Context, r *loop.Run[T]) bool {
	ours, value := r.Terms().Installation, r.Obj.GetAnnotations()[api.AnnotationExternal]
	if ours == "" || !strings.Contains(value, `"installation":`) || strings.Contains(value, fmt.Sprintf(`"installation":%q`, ours)) {
		return true
	}
	there, err := parseRecord(value)
	if err != nil || there.Installation == "" || there.Installation == ours {
		return true
	}
	if there.UID != string(r.Obj.GetUID()) {
		if uid, err := e.cluster.get(ctx, r.Live()); err != nil || there.Cluster != uid {
			return true // a copy from somewhere else
		}
	}
	t := e.tracks.of(r.Obj.GetUID())
	if !t.told {
		t.told = true
		r.Log().Info("left alone: another installation of the operator works on the object", "installation", there.Installation, "ours", ours)
	}
	return false
}
