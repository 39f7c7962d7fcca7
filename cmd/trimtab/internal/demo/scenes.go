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

// ordersLimit is spec.maxMsgs of the stream orders.
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

// createObjects creates objects of each kind, including one that has to wait and one that
// NATS refuses.
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
	if err := s.client.has(ctx, "orders/billing", "KV_settings"); err != nil {
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

// refused creates a stream whose subjects overlap with those of another one.
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
	if found, err := s.client.streams(ctx); err != nil || slices.Contains(found, "broken") {
		return errors.Join(err, fmt.Errorf("NATS has %v", found))
	}
	return nil
}

// makeDrift changes resources directly in NATS.
func (s *stage) makeDrift(ctx context.Context, st *steps.Step) error {
	if err := s.client.limit(ctx, "orders", 7); err != nil {
		return err
	}
	s.print.Line("      someone changes the limit of stream orders to 7 messages")
	if err := s.client.deleteConsumer(ctx, "orders", "billing"); err != nil {
		return err
	}
	s.print.Line("      someone deletes consumer billing")
	if err := s.until(ctx, "NATS to match the specs again", func() (bool, error) {
		limit, err := s.client.limitOf(ctx, "orders")
		return err == nil && limit == ordersLimit && s.client.has(ctx, "orders/billing") == nil, err
	}); err != nil {
		return err
	}
	found := s.operator.differences()
	if !slices.ContainsFunc(found, func(d string) bool { return strings.Contains(d, "spec.maxMsgs") }) {
		return fmt.Errorf("drift was repaired, but the operator did not report the difference; it reported %q", found)
	}
	for _, obj := range []external{stream("orders"), consumer("billing", "orders")} {
		if err := s.ready(ctx, obj); err != nil {
			return err
		}
	}
	const most = 3 // attempts in the few seconds since it was created
	if n := len(s.client.writes("broken")); n > most {
		return fmt.Errorf("the refused stream was tried %d times already: a hot loop", n)
	}
	st.Detail("both found and repaired; the drift interval is 1s")
	return nil
}

// killInMidCreate kills the operator after NATS has created a stream and before the operator
// receives the answer.
func (s *stage) killInMidCreate(ctx context.Context, st *steps.Step) error {
	s.hook.arm(func(c natsserver.Call) bool { return c.Op == "STREAM.CREATE" && c.Stream == "payments" && c.Err == "" }, s.operator.kill)
	payments := stream("payments")
	if err := s.admin.Create(ctx, payments); err != nil {
		return err
	}
	if err := s.until(ctx, "NATS to create the stream", func() (bool, error) { return s.hook.wasCalled(), nil }); err != nil {
		return err
	}
	if err := s.client.has(ctx, "payments"); err != nil {
		return err
	}
	if err := s.admin.Get(ctx, client.ObjectKeyFromObject(payments), payments); err != nil {
		return err
	}
	if meta.IsStatusConditionTrue(payments.Status.Conditions, api.ConditionReady) {
		return errors.New("the operator received the answer to the create before it was killed")
	}
	s.print.Line("      killed: NATS has created stream payments, but the operator never received the answer")
	if err := s.operator.start(); err != nil {
		return err
	}
	for _, obj := range []external{payments, consumer("shipping", "payments")} {
		if err := s.ready(ctx, obj); err != nil {
			return err
		}
	}
	if n := len(s.client.writes("payments")); n != 1 {
		return fmt.Errorf("NATS received %d mutating requests for stream payments, want the one create", n)
	}
	if err := s.client.has(ctx, "payments/shipping"); err != nil {
		return err
	}
	st.Detail("one create, nothing leaked; the consumer that waited for the stream is Ready")
	return nil
}

// deleteAll deletes every object and verifies that NATS is empty.
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
	left, err := s.client.streams(ctx)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("NATS still has %v", left)
	}
	if s.costs, err = s.count(); err != nil {
		return err
	}
	st.Detail("NATS is empty, and no object is left")
	return nil
}

// external is an object of one of the demo's kinds.
type external interface {
	client.Object
	api.ExternalObject
}

// ready waits until the status of obj says that its current spec has been applied.
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
	return fmt.Errorf("%w; its state is %q, and its Ready condition says %s", err, o.State, said)
}

// until polls ok ten times a second until it reports true or the step's time is up. It is for
// conditions that cannot be watched.
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
			return fmt.Errorf("still waiting for %s", what)
		case <-tick.C:
		}
	}
}
