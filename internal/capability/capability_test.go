package capability

import (
	"context"
	"log/slog"
	"net/url"
	"reflect"
	"strings"
	"testing"
)

type cleaner interface {
	Cleanup(ctx context.Context, names ...string) (int, error)
}

type right struct{}

func (right) Cleanup(context.Context, ...string) (int, error) { return 0, nil }

type other struct{}

func (other) Cleanup(context.Context, []string) error { return nil }

type misspelt struct{}

func (misspelt) CleanUp(context.Context, ...string) (int, error) { return 0, nil }

type byPointer struct{}

func (*byPointer) Cleanup(context.Context, ...string) (int, error) { return 0, nil }

// request is generic, and so are what it is of: package reflect names type arguments by import path.
type request[T, C any] struct {
	Object T
	Client C
}

type updater[T, C any] interface {
	Update(r request[T, C]) error
}

type pointed struct{}

func (pointed) Update(request[*url.URL, *map[string]slog.Level]) error { return nil }

// DoRequest and UndoRequest are parameters of no other methods than those of doer and undoer.
type (
	DoRequest[T any] struct{ What T }
	UndoRequest      struct{}
)

type doer interface{ Do(r DoRequest[int]) error }

type undoer interface {
	Undo(ctx context.Context, r UndoRequest) error
	Redo(r UndoRequest) error
}

type done struct{}

func (done) Do(DoRequest[int]) error { return nil }

// What authors meant to write.
type (
	otherByPointer   struct{ done }
	rightByPointer   struct{ done }
	anotherLetter    struct{ done }
	anotherByPointer struct{ done }
	anotherName      struct{ done }
	byReference      struct{ done }
	ownRequest       struct{ done }
	nearButOther     struct{ done }
	nearAndLike      struct{ done }
)

type ownsRequest struct{}

func (*otherByPointer) Undo(UndoRequest) error                       { return nil }
func (*rightByPointer) Undo(context.Context, UndoRequest) error      { return nil }
func (anotherLetter) Undoo(context.Context, UndoRequest) error       { return nil }
func (*anotherByPointer) Rendo(UndoRequest)                          {}
func (anotherName) Revert(context.Context, UndoRequest) error        { return nil }
func (byReference) Revert(context.Context, *UndoRequest) error       { return nil }
func (ownRequest) Revert(ownsRequest) error                          { return nil }
func (nearButOther) Cleanups() error                                 { return nil }
func (nearAndLike) Cleanups(context.Context, ...string) (int, error) { return 0, nil }

// TestUnknown: each sentence about a method that is not called.
func TestUnknown(t *testing.T) {
	in := Interfaces{Required: reflect.TypeFor[doer](), Optional: []reflect.Type{reflect.TypeFor[undoer](), reflect.TypeFor[cleaner]()}, Requests: true}
	for name, test := range map[string]struct {
		author any
		want   string
	}{
		"what every author has": {done{}, ""},
		"another signature, pointer receiver": {otherByPointer{}, "capability.otherByPointer has the method\n\tUndo(capability.UndoRequest) error\n" +
			"which is not called, because that of capability.undoer is\n\tUndo(context.Context, capability.UndoRequest) error"},
		"pointer receiver, one method of two": {rightByPointer{}, "Undo of capability.rightByPointer has a pointer receiver and is not called of a value: pass a pointer, &rightByPointer{...}"},
		"one letter too many": {anotherLetter{}, "capability.anotherLetter has the method Undoo, which is not called: that of capability.undoer is " +
			"Undo(context.Context, capability.UndoRequest) error"},
		"misspelt, another signature, pointer receiver": {anotherByPointer{}, "capability.anotherByPointer has the method Rendo, which is not called: that of capability.undoer is " +
			"Redo(capability.UndoRequest) error"},
		"no such name": {anotherName{}, "capability.anotherName has the method Revert with a parameter of type capability.UndoRequest, which is not called, " +
			"because no interface of package capability has it: rename it, or unexport it if you call it yourself"},
		"a pointer to a request": {byReference{}, "capability.byReference has the method Revert with a parameter of type capability.UndoRequest, which is not called, " +
			"because no interface of package capability has it: rename it, or unexport it if you call it yourself"},
		"near, but nothing alike": {nearButOther{}, ""},
		"near, same signature":    {nearAndLike{}, "capability.nearAndLike has the method Cleanups, which is not called: that of capability.cleaner is Cleanup(context.Context, ...string) (int, error)"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := in.Check(test.author); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
	if err := (Interfaces{Required: reflect.TypeFor[doer](), Optional: in.Optional}).Check(anotherName{}); err != nil {
		t.Errorf("where requests are no sign: %v", err)
	}
	if err := in.Check(ownRequest{}); err == nil { // of this package, as in.Required is
		t.Error("any type of the package whose name ends in Request is one")
	}
}

func TestDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"update", "update", 0},
		{"updat", "update", 1},
		{"upddate", "update", 1},
		{"opdate", "update", 1},
		{"udpate", "update", 2},
		{"", "mark", 4},
		{"mark", "unmark", 2},
		{"remove", "delete", 4},
	} {
		if got := distance(test.a, test.b); got != test.want {
			t.Errorf("%q and %q: %d, want %d", test.a, test.b, got, test.want)
		}
		if got := distance(test.b, test.a); got != test.want {
			t.Errorf("%q and %q: %d, want %d", test.b, test.a, got, test.want)
		}
	}
}

func TestCheck(t *testing.T) {
	for name, test := range map[string]struct {
		author any
		want   []string
	}{
		"implemented":          {right{}, nil},
		"implemented, pointer": {&right{}, nil},
		"not there":            {struct{}{}, nil},
		"nothing":              {nil, nil},
		"another signature": {other{}, []string{
			"Cleanup(context.Context, []string) error", "Cleanup(context.Context, ...string) (int, error)",
		}},
		"another type argument": {pointed{}, []string{
			"capability.pointed has", "\tUpdate(capability.request[*url.URL, *map[string]slog.Level]) error\n",
			"that of capability.updater[*url.URL, map[string]slog.Level] is\n\tUpdate(capability.request[*url.URL, map[string]slog.Level]) error",
		}},
		"misspelt":         {misspelt{}, []string{"the method CleanUp", "Cleanup(context.Context, ...string) (int, error)"}},
		"pointer receiver": {byPointer{}, []string{"&byPointer{...}"}},
		"pointer":          {&byPointer{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			err := Interfaces{
				Required: reflect.TypeFor[doer](), Optional: []reflect.Type{reflect.TypeFor[cleaner](), reflect.TypeFor[updater[*url.URL, map[string]slog.Level]]()},
			}.Check(test.author)
			if len(test.want) == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			for _, part := range test.want {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("%v, want %q in it", err, part)
				}
			}
		})
	}
}
