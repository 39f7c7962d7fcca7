package disturb

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/sandbox"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// An API server's DELETE reads its object, decides by that whether finalizers keep it, asks
// admission, and then removes what is stored under the name: the registry's Delete compares no
// version (k8s.io/apiserver, registry/generic/registry/store.go). What is written in between goes
// with the object. So a finalizer that was written is no promise, for as long as a DELETE takes.

// DeleteTakes is how long a DELETE may be under way: the usual timeout of a webhook that it asks.
const DeleteTakes = 10 * time.Second

// deletion is a user's DELETE that has read its object and not removed it yet.
type deletion struct {
	end    chan struct{} // closed to let it go on
	done   chan error
	cancel context.CancelFunc
}

// deleteBefore does what a schedule has deletes do just before a call.
func (o *Others) deleteBefore(c *history.Call) {
	for _, d := range o.Schedule {
		switch {
		case d.Kind == schedule.Overtaken && d.ReadAt() == c.Index:
			o.endsWell(o.box.Do(history.User, func(context.Context, *sandbox.World) error { return o.beginDelete(c) }))
		case d.Kind == schedule.DeletedBefore && d.At == c.Index:
			o.record.Disturbed(d.Kind, c.Index, "delete of "+c.Name)
			o.endsWell(o.box.Do(history.User, func(ctx context.Context, w *sandbox.World) error { return o.deleteNow(ctx, w, c) }))
		}
	}
}

// After lets them act just after a call.
func (o *Others) After(c *history.Call) {
	d, ok := o.Schedule.Find(c.Index, schedule.Overtaken, schedule.DeletedAfter)
	if !ok || d.ReadAt() > c.Index {
		return
	}
	of := &o.record.Run.Calls[d.ReadAt()]
	o.record.Disturbed(d.Kind, c.Index, "delete of "+of.Name)
	if d.Kind == schedule.DeletedAfter {
		o.endsWell(o.box.Do(history.User, func(ctx context.Context, w *sandbox.World) error { return o.deleteNow(ctx, w, of) }))
		return
	}
	o.endsWell(o.box.Do(history.User, func(context.Context, *sandbox.World) error { return o.endDelete() }))
}

// endsWell notes that a delete had nothing to act on, or why the run cannot go on.
func (o *Others) endsWell(err error) {
	switch {
	case err == nil:
	case apierrors.IsNotFound(err), sandbox.IsRefused(err):
		o.Void = true
	default:
		o.Broken = err
	}
}

func (o *Others) deleteNow(ctx context.Context, w *sandbox.World, c *history.Call) error {
	u, err := o.box.ObjectOf(c)
	if err != nil {
		return err
	}
	return w.Client.Delete(ctx, u)
}

// beginDelete lets a user's DELETE go as far as to the moment before it removes its object. One
// that ends at once found a finalizer: such a run says nothing.
func (o *Others) beginDelete(c *history.Call) error {
	u, err := o.box.ObjectOf(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	d := &deletion{end: make(chan struct{}), done: make(chan error, 1), cancel: cancel}
	read := make(chan struct{})
	ctx = store.HoldDeletes(ctx, func(ctx context.Context) error {
		close(read)
		select {
		case <-d.end:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	go func() { d.done <- o.box.World().Client.Delete(ctx, u) }()
	select {
	case <-read:
		o.deleting = d
		return nil
	case err := <-d.done:
		cancel()
		o.Void = true
		return err
	}
}

// endDelete lets a DELETE that has begun remove its object.
func (o *Others) endDelete() error {
	d := o.deleting
	if d == nil {
		o.Void = true
		return nil
	}
	o.deleting = nil
	defer d.cancel()
	close(d.end)
	return <-d.done
}

// Drop ends a DELETE whose moment never came.
func (o *Others) Drop() {
	if d := o.deleting; d != nil {
		o.deleting = nil
		d.cancel()
		_ = <-d.done // it was given up
	}
}
