package externaltest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"

	"github.com/trimtab-dev/trimtab/external"
)

func (k *kit[T, C, O]) stableName(context.Context) error {
	a, b := k.object("a"), k.object("b")
	first, err := k.nameOf(a)
	if err != nil {
		return found("ExternalName: %w", err)
	}
	again, err := k.nameOf(copyOf(a))
	if err != nil || again != first {
		return found("ExternalName returned %q for an object, then %q, %w", first, again, err)
	}
	other, err := k.nameOf(b)
	if err != nil || other == first && !k.f.Options.AssignedIDs {
		return found("ExternalName returned %q for two objects, %w; Fixture.New must return objects with different resources", other, err)
	}
	k.obj, k.id = a, first
	return nil
}

func (k *kit[T, C, O]) missing(ctx context.Context) error {
	o, err := k.observe(ctx, k.obj, k.id)
	switch {
	case err != nil:
		return found("Observe of a resource that does not exist: %w; return external.Missing", err)
	case !isMissing(o):
		return found("Observe found a resource %q before it was created, with phase %q; the test needs an API in which there is none", k.id, o.Phase)
	}
	return nil
}

// compareEmpty asks what the spec asks for. A panic is harmless there, so it is not reported.
func (k *kit[T, C, O]) compareEmpty(context.Context) error {
	defer func() { _ = recover() }()
	var none O
	obj := copyOf(k.obj)
	all := k.driver.Compare(external.CompareRequest[T, O]{Object: obj, Have: none})
	return same("the differences from an empty resource", all, k.driver.Compare(external.CompareRequest[T, O]{Object: obj, Have: none}))
}

func (k *kit[T, C, O]) deleteMissing(ctx context.Context) error {
	if _, err := k.driver.Delete(ctx, k.deleteRequest(k.obj, k.id)); err != nil && !isAbsent(err) {
		return found("Delete of a resource that does not exist: %w; it must succeed", err)
	}
	return nil
}

func (k *kit[T, C, O]) create(ctx context.Context) error {
	id, err := k.make(ctx, k.obj)
	if err == nil {
		k.id = id
	}
	return err
}

func (k *kit[T, C, O]) marked(ctx context.Context) error {
	o, err := k.observe(ctx, k.obj, k.id)
	if err != nil {
		return err
	}
	return k.bears(o, k.markOf(k.obj))
}

func (k *kit[T, C, O]) bears(o external.Observation[O], want external.Mark) error {
	if k.f.Options.Unmarked {
		return nil
	}
	for key, value := range want {
		if got, found := o.Mark[key]; !found || got != value {
			return fmt.Errorf("the ownership mark of the resource has %q for %q instead of %q; store all of the Mark of the request, and return it "+
				"in Observation.Mark, or set Options.Unmarked", got, key, value)
		}
	}
	return nil
}

// converged waits until nothing differs. What Create leaves undone may be done by Update.
func (k *kit[T, C, O]) converged(ctx context.Context) error {
	o, err := k.observe(ctx, k.obj, k.id)
	if err != nil {
		return err
	}
	if changes := acted(k.compare(k.obj, o)); len(changes.With(external.InPlace)) < len(changes) {
		return found("Compare sees differences that Update cannot remove: %s; what the API fills in must not be compared if the spec leaves it unset", changes)
	}
	return k.update(ctx)
}

func (k *kit[T, C, O]) comparePure(ctx context.Context) error {
	o, err := k.observe(ctx, k.obj, k.id)
	if err != nil {
		return err
	}
	obj := copyOf(k.obj)
	r := external.CompareRequest[T, O]{Object: obj, Have: o.Have}
	first, again := k.driver.Compare(r), k.driver.Compare(r)
	if !reflect.DeepEqual(obj, k.obj) {
		return found("Compare changed the object")
	}
	return same("the differences", first, again)
}

func (k *kit[T, C, O]) observePure(ctx context.Context) error {
	first, err := k.observe(ctx, k.obj, k.id)
	if err != nil {
		return err
	}
	before := copyOf(k.obj)
	for range 3 {
		o, err := k.driver.Observe(ctx, external.ObserveRequest[T, C]{Client: k.f.Client, Object: k.obj, ID: k.id, Incarnation: max(1, k.incarnation)})
		if err != nil {
			return found("Observe: %w", err)
		}
		if !reflect.DeepEqual(k.obj, before) {
			return found("Observe changed the object")
		}
		if err := errors.Join(same("the differences", acted(k.compare(k.obj, first)), acted(k.compare(k.obj, o))), sameMark(first.Mark, o.Mark)); err != nil {
			return fmt.Errorf("after an observation: %w", err)
		}
	}
	return k.untouched(ctx, "Observe")
}

// same reports whether two lists of changes are the same.
func same(what string, a, b external.Changes) error {
	if a.String() != b.String() || len(a) != len(b) {
		return fmt.Errorf("%s are %q at first, and then %q", what, a, b)
	}
	return nil
}

func sameMark(a, b external.Mark) error {
	if !maps.Equal(a, b) {
		return fmt.Errorf("the mark is %v at first, and then %v", a, b)
	}
	return nil
}

func (k *kit[T, C, O]) reflect(ctx context.Context) error {
	o, err := k.observe(ctx, k.obj, k.id)
	if err != nil {
		return err
	}
	reflector, _ := k.driver.(external.Reflector[T, O])
	shown := copyOf(k.obj)
	reflector.Reflect(external.ReflectRequest[T, O]{Object: shown, Have: o.Have})
	spec := func(obj T) any { return reflect.ValueOf(obj).Elem().FieldByName("Spec").Interface() }
	if !reflect.DeepEqual(spec(shown), spec(k.obj)) || !reflect.DeepEqual(shown.GetAnnotations(), k.obj.GetAnnotations()) {
		return found("Reflect changed the spec or the annotations of the object")
	}
	return nil
}

func (k *kit[T, C, O]) otherID(ctx context.Context) error {
	b := k.object("b")
	id, err := k.nameOf(b)
	if err != nil {
		return err
	}
	o, err := k.observe(ctx, b, id)
	if err != nil {
		return found("Observe of another ID: %w", err)
	}
	if !isMissing(o) {
		return found("Observe of %q, which was never created, found a resource after the creation of %q; the ID must be used", id, k.id)
	}
	return nil
}

// createAgain repeats a create whose answer was lost.
func (k *kit[T, C, O]) createAgain(ctx context.Context) error {
	name, err := k.nameOf(k.obj)
	if err != nil {
		return err
	}
	response, err := k.driver.Create(ctx, k.createRequest(k.obj, name))
	if err == nil {
		id, err := k.identify(ctx, k.obj, name, response)
		if err != nil {
			return err
		}
		if id != k.id {
			k.made = append(k.made, made[T]{k.obj, id})
			return fmt.Errorf("a second Create with the same Token made another resource, %q beside %q; Options.Tokens must not be set", id, k.id)
		}
	} else if k.f.Options.Tokens {
		return fmt.Errorf("a second Create with the same Token must return the resource of the first one; it failed: %w", err)
	}
	return k.untouched(ctx, "a second Create")
}

// untouched reports whether the resource is as it was.
func (k *kit[T, C, O]) untouched(ctx context.Context, after string) error {
	o, err := k.await(ctx, k.obj, k.id, "the resource to be Available", func(o external.Observation[O]) bool { return usable(o) })
	if err != nil {
		return fmt.Errorf("after %s: %w", after, err)
	}
	if changes := acted(k.compare(k.obj, o)); len(changes) > 0 {
		return fmt.Errorf("%s changed the resource: %s", after, changes)
	}
	if err := k.bears(o, k.markOf(k.obj)); err != nil {
		return fmt.Errorf("after %s: %w", after, err)
	}
	return nil
}

// createForOther creates a resource of the same name for another object.
func (k *kit[T, C, O]) createForOther(ctx context.Context) error {
	other := copyOf(k.obj)
	other.SetUID("uid-of-another-object")
	r := k.createRequest(other, k.id)
	if _, err := k.driver.Create(ctx, r); err != nil && isLost(err) {
		return found("Create of a name that is taken: %w; return external.Conflict", err)
	}
	return k.untouched(ctx, "a Create of the same name for another object")
}

// isLost reports whether the author has declared that it is unknown what came of a call.
func isLost(err error) bool {
	e, is := errors.AsType[*external.Error](err)
	return is && e.Class == external.ClassAmbiguous
}

func (k *kit[T, C, O]) find(ctx context.Context) error {
	finder, _ := k.driver.(external.Finder[T, C])
	answer, err := finder.Find(ctx, external.FindRequest[T, C]{Client: k.f.Client, Object: copyOf(k.obj), Incarnation: max(1, k.incarnation), Mark: k.markOf(k.obj)})
	if err != nil {
		return found("Find: %w", err)
	}
	for _, one := range answer.Found {
		if one.Mark[external.MarkUID] == string(k.obj.GetUID()) && one.ID == k.id {
			return nil
		}
	}
	return found("Find returned %v, but not the resource %q with its mark", answer.Found, k.id)
}

func (k *kit[T, C, O]) markAgain(ctx context.Context) error {
	marker, _ := k.driver.(external.Marker[T, C])
	for range 2 {
		if err := k.mark(ctx, marker, k.obj, k.id); err != nil {
			return err
		}
	}
	return k.untouched(ctx, "Mark")
}

// mostUpdates is after how many updates the engine gives up.
const mostUpdates = 3

// change applies one change of the spec.
func (k *kit[T, C, O]) change(ctx context.Context, name string) error {
	changed := copyOf(k.obj)
	k.f.Changes[name](changed)
	changed.SetGeneration(k.obj.GetGeneration() + 1)
	o, err := k.observe(ctx, k.obj, k.id)
	if err != nil {
		return err
	}
	changes := acted(k.compare(changed, o))
	if len(changes) == 0 {
		return found("Compare sees no difference after this change of the spec")
	}
	if n := len(changes.With(external.Unsupported)); n > 0 {
		return found("Compare says that no call can make the change: %s; it does not belong in Fixture.Changes", changes)
	}
	k.obj = changed
	if len(changes.With(external.Recreate)) > 0 {
		return k.recreate(ctx)
	}
	return k.update(ctx)
}

// update calls Update until nothing differs.
func (k *kit[T, C, O]) update(ctx context.Context) error {
	for range mostUpdates {
		o, err := k.await(ctx, k.obj, k.id, "the resource to be Available", func(o external.Observation[O]) bool { return usable(o) })
		if err != nil {
			return err
		}
		changes := k.compare(k.obj, o)
		if len(acted(changes)) == 0 {
			return k.bears(o, k.markOf(k.obj))
		}
		if err := k.updateOnce(ctx, o, changes); err != nil {
			return err
		}
	}
	o, err := k.observe(ctx, k.obj, k.id)
	if err != nil {
		return err
	}
	if changes := acted(k.compare(k.obj, o)); len(changes) > 0 {
		return fmt.Errorf("after %d calls of Update, Compare still sees differences: %s; what the API fills in or rounds must not be compared", mostUpdates, changes)
	}
	return k.untouched(ctx, "Update")
}

func (k *kit[T, C, O]) updateOnce(ctx context.Context, o external.Observation[O], changes external.Changes) error {
	updater, updates := k.driver.(external.Updater[T, C, O])
	if !updates {
		return found("Compare sees a difference with effect InPlace, and the driver has no method Update: %s", changes)
	}
	response, err := updater.Update(ctx, external.UpdateRequest[T, C, O]{
		Client: k.f.Client, Object: copyOf(k.obj), ID: k.id, Incarnation: max(1, k.incarnation), Have: o.Have, Changes: changes, Passwords: maps.Clone(k.passwords),
	})
	if err != nil {
		return found("Update: %w", err)
	}
	if response.ID != "" {
		k.id = response.ID
		k.made = append(k.made, made[T]{k.obj, k.id})
	}
	_, err = k.follow(ctx, k.obj, k.id, response.Operation)
	return err
}

func (k *kit[T, C, O]) recreate(ctx context.Context) error {
	if err := k.remove(ctx, k.obj, k.id); err != nil {
		return err
	}
	k.incarnation = max(1, k.incarnation) + 1
	if err := k.create(ctx); err != nil {
		return err
	}
	return k.converged(ctx)
}

func (k *kit[T, C, O]) unmark(ctx context.Context) error {
	unmarker, _ := k.driver.(external.Unmarker[T, C])
	if _, err := unmarker.Unmark(ctx, k.unmarkRequest()); err != nil {
		return found("Unmark: %w", err)
	}
	o, err := k.await(ctx, k.obj, k.id, "the mark to be gone", func(o external.Observation[O]) bool {
		return isMissing(o) || len(external.MarkOf(o.Mark)) == 0
	})
	switch {
	case err != nil:
		return fmt.Errorf("after Unmark: %w", err)
	case isMissing(o):
		return found("Unmark removed the resource")
	}
	if changes := acted(k.compare(k.obj, o)); len(changes) > 0 {
		return found("Unmark changed the resource: %s", changes)
	}
	return nil
}

func (k *kit[T, C, O]) delete(ctx context.Context) error { return k.remove(ctx, k.obj, k.id) }

// deleteAgain does what may be done to a resource that is gone.
func (k *kit[T, C, O]) deleteAgain(ctx context.Context) error {
	if err := k.deleteMissing(ctx); err != nil {
		return err
	}
	if marker, marks := k.driver.(external.Marker[T, C]); marks && !k.f.Options.Unmarked && k.mark(ctx, marker, k.obj, k.id) == nil {
		return found("Mark succeeds although the resource does not exist")
	}
	unmarker, unmarks := k.driver.(external.Unmarker[T, C])
	if !unmarks {
		return nil
	}
	if _, err := unmarker.Unmark(ctx, k.unmarkRequest()); err != nil && !isAbsent(err) {
		return found("Unmark of a resource that does not exist: %w; it must succeed", err)
	}
	return nil
}

func (k *kit[T, C, O]) unmarkRequest() external.UnmarkRequest[T, C] {
	return external.UnmarkRequest[T, C]{Client: k.f.Client, Object: copyOf(k.obj), ID: k.id, Incarnation: max(1, k.incarnation)}
}

// again creates the resource once more: nothing of the first one may be in the way.
func (k *kit[T, C, O]) again(ctx context.Context) error {
	k.incarnation = max(1, k.incarnation) + 1
	if err := k.create(ctx); err != nil {
		return err
	}
	return errors.Join(k.converged(ctx), k.remove(ctx, k.obj, k.id))
}
