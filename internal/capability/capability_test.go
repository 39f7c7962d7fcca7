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
			err := Check(test.author, reflect.TypeFor[cleaner](), reflect.TypeFor[updater[*url.URL, map[string]slog.Level]]())
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
