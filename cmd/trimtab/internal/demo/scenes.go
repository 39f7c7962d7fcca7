package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/steps"
	"github.com/trimtab-dev/trimtab/internal/natsserver"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
)

// ordersLimit is what spec.maxMsgs of the stream orders asks for.
const ordersLimit = 1000

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func stream(name string) *v1alpha1.Stream {
	return &v1alpha1.Stream{ObjectMeta: named(name), Spec: v1alpha1.StreamSpec{Subjects: []string{name + ".>"}}}
}

func consumer(name, of string) *v1alpha1.Consumer {
	return &v1alpha1.Consumer{ObjectMeta: named(name), Spec: v1alpha1.ConsumerSpec{StreamRef: &v1alpha1.StreamRef{Name: of}}}
}

// createObjects makes objects of each kind, one that has to wait and one that NATS refuses.
func (s *stage) createObjects(ctx context.Context, st *steps.Step) error {
	orders := stream("orders")
	orders.Spec.MaxMsgs = new(int64(ordersLimit))
	billing, shipping := consumer("billing", "orders"), consumer("shipping", "payments")
	settings := &v1alpha1.KeyValue{ObjectMeta: named("settings")}
	for _, obj := range []client.Object{orders, billing, settings, shipping} {
		if err := s.admin.Create(ctx, obj); err != nil {
			return err
		}
	}
	for _, obj := range []external{orders, billing, settings} {
		if err := s.ready(ctx, obj); err != nil {
			return err
		}
	}
	if err := s.looker.has(ctx, "orders/billing", "KV_settings"); err != nil {
		return err
	}
	if err := s.condition(ctx, shipping, "waits for its stream", func(o *api.ExternalStatus) bool {
		return o.State == "Pending" && !meta.IsStatusConditionTrue(o.Conditions, api.ConditionFailed)
	}); err != nil {
		return err
	}
	if err := s.refused(ctx); err != nil {
		return err
	}
	st.Detail("3 Ready, 1 waits, 1 refused by NATS")
	return nil
}

// refused makes a stream whose subjects another one has already.
func (s *stage) refused(ctx context.Context) error {
	broken := stream("broken")
	broken.Spec.Subjects = []string{"orders.new"}
	if err := s.admin.Create(ctx, broken); err != nil {
		return err
	}
	if err := s.condition(ctx, broken, "is Failed with NATS's reason", func(o *api.ExternalStatus) bool {
		ready := meta.FindStatusCondition(o.Conditions, api.ConditionReady)
		return o.State == "Failed" && ready != nil && strings.Contains(ready.Message, "overlap")
	}); err != nil {
		return err
	}
	if found, err := s.looker.streams(ctx); err != nil || slices.Contains(found, "broken") {
		return errors.Join(err, fmt.Errorf("NATS has %v", found))
	}
	return nil
}

// makeDrift changes NATS behind the operator's back.
func (s *stage) makeDrift(ctx context.Context, st *steps.Step) error {
	if err := s.looker.limit(ctx, "orders", 7); err != nil {
		return err
	}
	s.print.Line("      somebody sets the limit of stream orders to 7 messages")
	if err := s.looker.deleteConsumer(ctx, "orders", "billing"); err != nil {
		return err
	}
	s.print.Line("      somebody deletes consumer billing")
	if err := s.until(ctx, "NATS to be as asked for again", func() (bool, error) {
		limit, err := s.looker.limitOf(ctx, "orders")
		return err == nil && limit == ordersLimit && s.looker.has(ctx, "orders/billing") == nil, err
	}); err != nil {
		return err
	}
	found := s.operator.differences()
	if !slices.ContainsFunc(found, func(d string) bool { return strings.Contains(d, "spec.maxMsgs") }) {
		return fmt.Errorf("repaired, but the operator did not say what differed; it said %q", found)
	}
	for _, obj := range []external{stream("orders"), consumer("billing", "orders")} {
		if err := s.ready(ctx, obj); err != nil {
			return err
		}
	}
	const most = 3 // attempts in the seconds since
	if n := len(s.looker.writes("broken")); n > most {
		return fmt.Errorf("the refused stream was tried %d times already, a hot loop", n)
	}
	st.Detail("found and repaired within a drift interval of 1s")
	return nil
}

// killInMidCreate kills the operator after NATS made a stream and before the operator knows.
func (s *stage) killInMidCreate(ctx context.Context, st *steps.Step) error {
	s.trap.set(func(c natsserver.Call) bool { return c.Op == "STREAM.CREATE" && c.Stream == "payments" && c.Err == "" }, s.operator.kill)
	payments := stream("payments")
	if err := s.admin.Create(ctx, payments); err != nil {
		return err
	}
	if err := s.until(ctx, "NATS to create the stream", func() (bool, error) { return s.trap.hasSprung(), nil }); err != nil {
		return err
	}
	if err := s.looker.has(ctx, "payments"); err != nil {
		return err
	}
	if err := s.admin.Get(ctx, client.ObjectKeyFromObject(payments), payments); err != nil {
		return err
	}
	if meta.IsStatusConditionTrue(payments.Status.Conditions, api.ConditionReady) {
		return errors.New("the operator learned of the create before it was killed")
	}
	s.print.Line("      killed: NATS has stream payments, the operator never heard of it")
	if err := s.operator.start(); err != nil {
		return err
	}
	for _, obj := range []external{payments, consumer("shipping", "payments")} {
		if err := s.ready(ctx, obj); err != nil {
			return err
		}
	}
	if n := len(s.looker.writes("payments")); n != 1 {
		return fmt.Errorf("NATS received %d mutating requests for stream payments, want the one create", n)
	}
	if err := s.looker.has(ctx, "payments/shipping"); err != nil {
		return err
	}
	st.Detail("one create, nothing leaked; the waiting consumer went on by event")
	return nil
}

// deleteAll deletes every object and looks whether NATS is empty.
func (s *stage) deleteAll(ctx context.Context, st *steps.Step) error {
	kinds := []client.Object{&v1alpha1.Consumer{}, &v1alpha1.KeyValue{}, &v1alpha1.Stream{}}
	for _, kind := range kinds {
		if err := s.admin.DeleteAllOf(ctx, kind, client.InNamespace(namespace)); err != nil {
			return err
		}
	}
	for _, list := range []client.ObjectList{&v1alpha1.ConsumerList{}, &v1alpha1.KeyValueList{}, &v1alpha1.StreamList{}} {
		if err := s.until(ctx, "all objects to be gone", func() (bool, error) {
			err := s.admin.List(ctx, list, client.InNamespace(namespace))
			return meta.LenList(list) == 0, err
		}); err != nil {
			return err
		}
	}
	left, err := s.looker.streams(ctx)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("NATS still has %v", left)
	}
	if s.costs, err = s.count(); err != nil {
		return err
	}
	st.Detail("NATS is empty, no finalizer is left")
	return nil
}

// external is an object of one of the demo's kinds.
type external interface {
	client.Object
	api.ExternalObject
}

// ready waits until obj says that what it asks for is there.
func (s *stage) ready(ctx context.Context, obj external) error {
	return s.condition(ctx, obj, "is Ready", func(o *api.ExternalStatus) bool {
		return o.AppliedGeneration == obj.GetGeneration() && o.State == "Succeeded" &&
			meta.IsStatusConditionTrue(o.Conditions, api.ConditionReady)
	})
}

func (s *stage) condition(ctx context.Context, obj external, what string, ok func(*api.ExternalStatus) bool) error {
	name := fmt.Sprintf("%T %s", obj, obj.GetName())
	err := s.until(ctx, name+" "+what, func() (bool, error) {
		err := s.admin.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		return err == nil && ok(obj.TrimtabExternal()), client.IgnoreNotFound(err)
	})
	if err == nil {
		return nil
	}
	o := obj.TrimtabExternal()
	said := "nothing"
	if c := meta.FindStatusCondition(o.Conditions, api.ConditionReady); c != nil {
		said = fmt.Sprintf("%s: %s", c.Reason, c.Message)
	}
	return fmt.Errorf("%w; its state is %q, it says %s", err, o.State, said)
}

// until asks ten times a second, for what cannot be watched, until ok or the step's time is
// over.
func (s *stage) until(ctx context.Context, what string, ok func() (bool, error)) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		done, err := ok()
		switch {
		case err != nil && !apierrors.IsServiceUnavailable(err):
			return err
		case done:
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited for %s", what)
		case <-tick.C:
		}
	}
}
