package externaltest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/external/externaltest"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

// item is what the API of these tests keeps.
type item struct {
	size int
	tier string
	tags map[string]string
	seen int
}

// store is an API in memory, by name or by id.
type store struct {
	items  map[string]*item
	tokens map[string]string
}

func newStore() *store { return &store{map[string]*item{}, map[string]string{}} }

type (
	fixture     = externaltest.Fixture[*thing.Thing, *store]
	observation = external.Observation[item]
)

// good is a driver without a mistake. Its fields are mistakes.
type good struct {
	assigned bool
	// observes, creates and so on replace what a method does.
	observes func(*store, external.ObserveRequest[*thing.Thing, *store]) (observation, error)
	compares func(external.CompareRequest[*thing.Thing, item]) external.Changes
	creates  func(*store, external.CreateRequest[*thing.Thing, *store]) (external.CreateResponse[item], error)
	updates  func(*store, external.UpdateRequest[*thing.Thing, *store, item]) error
	deletes  func(*store, string) (external.DeleteResponse, error)
	named    func(*thing.Thing) string
}

func (g good) ExternalName(t *thing.Thing) (string, error) {
	if g.named != nil {
		return g.named(t), nil
	}
	return t.Name, nil
}

func (g good) Observe(_ context.Context, r external.ObserveRequest[*thing.Thing, *store]) (observation, error) {
	if g.observes != nil {
		return g.observes(r.Client, r)
	}
	return look(r.Client, r.ID), nil
}

func look(s *store, id string) observation {
	i := s.items[id]
	if i == nil {
		return external.Missing[item]()
	}
	return external.Available(*i, external.MarkOf(i.tags))
}

func (g good) Compare(r external.CompareRequest[*thing.Thing, item]) external.Changes {
	if g.compares != nil {
		return g.compares(r)
	}
	return differences(r)
}

func differences(r external.CompareRequest[*thing.Thing, item]) external.Changes {
	return external.Diff(
		external.Field("spec.size", r.Object.Spec.Size, r.Have.size),
		external.Recreates(external.Optional("spec.tier", r.Object.Spec.Tier, r.Have.tier)),
	)
}

func (g good) Create(_ context.Context, r external.CreateRequest[*thing.Thing, *store]) (external.CreateResponse[item], error) {
	if g.creates != nil {
		return g.creates(r.Client, r)
	}
	id := r.ID
	if g.assigned {
		if known := r.Client.tokens[r.Token]; known != "" {
			return external.CreateResponse[item]{ID: known}, nil
		}
		id = fmt.Sprintf("i-%d", len(r.Client.tokens)+1)
		r.Client.tokens[r.Token] = id
	}
	return add(r.Client, id, r)
}

func add(s *store, id string, r external.CreateRequest[*thing.Thing, *store]) (external.CreateResponse[item], error) {
	if s.items[id] != nil {
		return external.CreateResponse[item]{}, external.Conflict(errors.New("it exists"))
	}
	s.items[id] = &item{size: r.Object.Spec.Size, tier: r.Object.Spec.Tier, tags: r.Mark.On(nil)}
	return external.CreateResponse[item]{ID: id}, nil
}

func (g good) Update(_ context.Context, r external.UpdateRequest[*thing.Thing, *store, item]) (external.UpdateResponse[item], error) {
	if g.updates != nil {
		return external.UpdateResponse[item]{}, g.updates(r.Client, r)
	}
	r.Client.items[r.ID].size = r.Object.Spec.Size
	return external.UpdateResponse[item]{}, nil
}

func (g good) Delete(_ context.Context, r external.DeleteRequest[*thing.Thing, *store]) (external.DeleteResponse, error) {
	if g.deletes != nil {
		return g.deletes(r.Client, r.ID)
	}
	delete(r.Client.items, r.ID)
	return external.DeleteResponse{Gone: true}, nil
}

// able is good with the capabilities that not every driver has.
type able struct {
	good

	finds func() []external.Found
}

func (a able) Find(_ context.Context, r external.FindRequest[*thing.Thing, *store]) (external.FindResponse, error) {
	if a.finds != nil {
		return external.FindResponse{Found: a.finds()}, nil
	}
	var out external.FindResponse
	for _, id := range slices.Sorted(maps.Keys(r.Client.items)) {
		out.Found = append(out.Found, external.Found{ID: id, Mark: external.MarkOf(r.Client.items[id].tags)})
	}
	return out, nil
}

func (able) Mark(_ context.Context, r external.MarkRequest[*thing.Thing, *store]) (external.MarkResponse, error) {
	i := r.Client.items[r.ID]
	if i == nil {
		return external.MarkResponse{}, errors.New("there is none")
	}
	i.tags = r.Mark.On(i.tags)
	return external.MarkResponse{}, nil
}

func (able) Unmark(_ context.Context, r external.UnmarkRequest[*thing.Thing, *store]) (external.UnmarkResponse, error) {
	if i := r.Client.items[r.ID]; i != nil {
		i.tags = external.Unmark(i.tags)
	}
	return external.UnmarkResponse{}, nil
}

func (able) Reflect(r external.ReflectRequest[*thing.Thing, item]) { r.Object.Status.Host = "here" }

type options = external.Options[*thing.Thing, *store]

func fixtureOf(o options) fixture {
	return fixture{
		Client: newStore(), Options: o, Patience: 200 * time.Millisecond,
		New: func(string) *thing.Thing { return &thing.Thing{Spec: thing.Spec{Size: 1}} },
		Changes: map[string]func(*thing.Thing){
			"size": func(t *thing.Thing) { t.Spec.Size = 2 },
			"tier": func(t *thing.Thing) { t.Spec.Tier = "gold" },
		},
	}
}

func TestGoodDrivers(t *testing.T) {
	t.Parallel()
	t.Run("names", func(t *testing.T) { externaltest.Run(t, good{}, fixtureOf(options{UniqueNames: true})) })
	t.Run("every capability", func(t *testing.T) { externaltest.Run(t, able{}, fixtureOf(options{UniqueNames: true})) })
	t.Run("tokens", func(t *testing.T) {
		externaltest.Run(t, good{assigned: true}, fixtureOf(options{AssignedIDs: true, Tokens: true}))
	})
	t.Run("marks", func(t *testing.T) {
		externaltest.Run(t, able{good: good{assigned: true}}, fixtureOf(options{AssignedIDs: true}))
	})
	t.Run("marked later", func(t *testing.T) {
		later := able{good: good{creates: func(s *store, r external.CreateRequest[*thing.Thing, *store]) (external.CreateResponse[item], error) {
			r.Mark = nil
			return add(s, r.ID, r)
		}}}
		externaltest.Run(t, later, fixtureOf(options{MarkLater: true, UniqueNames: true}))
	})
}

// TestMistakes makes one mistake at a time. Each must be found by the check that is about it, and described.
func TestMistakes(t *testing.T) {
	t.Parallel()
	marked := options{UniqueNames: true}
	for name, test := range map[string]struct {
		driver  external.Driver[*thing.Thing, *store, item]
		options options
		check   string
		says    string
	}{
		"a Compare that never converges": {
			good{compares: func(r external.CompareRequest[*thing.Thing, item]) external.Changes {
				return external.Field("spec.size", r.Object.Spec.Size, r.Have.size+1)
			}}, marked, "the resource matches the spec after Create", "after 3 calls of Update, Compare still sees differences: spec.size 2 → 1",
		},
		"a Compare that varies": {
			good{compares: func() func(external.CompareRequest[*thing.Thing, item]) external.Changes {
				n := 0
				return func(r external.CompareRequest[*thing.Thing, item]) external.Changes {
					n++
					return external.Ignore(external.Field("spec.size", n, 0))
				}
			}()}, marked, "Compare with an empty resource", "and then",
		},
		"a Compare that changes the object": {
			good{compares: func(r external.CompareRequest[*thing.Thing, item]) external.Changes {
				r.Object.Spec.Account = "mine"
				return differences(r)
			}}, marked, "Compare is pure", "changed the object",
		},
		"a Compare that misses a change": {
			good{compares: func(external.CompareRequest[*thing.Thing, item]) external.Changes { return nil }}, marked, "change size", "sees no difference",
		},
		"a Create that fails after its effect": {
			good{creates: func(s *store, r external.CreateRequest[*thing.Thing, *store]) (external.CreateResponse[item], error) {
				_, err := add(s, r.ID, r)
				return external.CreateResponse[item]{}, errors.Join(err, errors.New("cannot attach the disk"))
			}}, marked, "Create", "Create failed after its effect",
		},
		"an ID that is ignored": {
			good{creates: func(s *store, r external.CreateRequest[*thing.Thing, *store]) (external.CreateResponse[item], error) {
				return add(s, "other-"+r.ID, r)
			}}, marked, "Create", `Create ignored the ID "a" and returned "other-a"`,
		},
		"an ID that is ignored by Observe": {
			good{observes: func(s *store, _ external.ObserveRequest[*thing.Thing, *store]) (observation, error) {
				for _, id := range slices.Sorted(maps.Keys(s.items)) {
					return look(s, id), nil
				}
				return external.Missing[item](), nil
			}}, marked, "another ID is another resource", "the ID must be used",
		},
		"an ID that is not used": {
			good{creates: func(s *store, r external.CreateRequest[*thing.Thing, *store]) (external.CreateResponse[item], error) {
				_, err := add(s, "other-"+r.ID, r)
				return external.CreateResponse[item]{}, err
			}}, marked, "Create", `after Create under the ID "a": waited`,
		},
		"an Observe that changes something": {
			good{observes: func(s *store, r external.ObserveRequest[*thing.Thing, *store]) (observation, error) {
				if i := s.items[r.ID]; i != nil {
					if i.seen++; i.seen > 6 {
						i.size = 7
					}
				}
				return look(s, r.ID), nil
			}}, marked, "Observe changes nothing", "spec.size 7 → 1",
		},
		"an absent resource that is an error": {
			good{observes: func(s *store, r external.ObserveRequest[*thing.Thing, *store]) (observation, error) {
				if o := look(s, r.ID); o.Phase != external.PhaseMissing {
					return o, nil
				}
				return observation{}, errors.New("no such item")
			}}, marked, "what does not exist is Missing", "return external.Missing",
		},
		"a mark that is not stored": {
			good{creates: func(s *store, r external.CreateRequest[*thing.Thing, *store]) (external.CreateResponse[item], error) {
				r.Mark = nil
				return add(s, r.ID, r)
			}}, marked, "the mark is stored", "or set Options.Unmarked",
		},
		"a mark that gets lost": {
			good{updates: func(s *store, r external.UpdateRequest[*thing.Thing, *store, item]) error {
				s.items[r.ID] = &item{size: r.Object.Spec.Size}
				return nil
			}}, marked, "change size", "the ownership mark of the resource has",
		},
		"an Update that does nothing": {
			good{updates: func(*store, external.UpdateRequest[*thing.Thing, *store, item]) error { return nil }}, marked, "change size", "after 3 calls of Update, Compare still sees differences: spec.size 1 → 2",
		},
		"a name that varies": {
			good{named: func() func(*thing.Thing) string {
				n := 0
				return func(*thing.Thing) string { n++; return fmt.Sprint("item-", n) }
			}()}, marked, "a name is always the same", `returned "item-1" for an object, then "item-2"`,
		},
		"a Delete that fails if there is nothing": {
			good{deletes: func(s *store, id string) (external.DeleteResponse, error) {
				if s.items[id] == nil {
					return external.DeleteResponse{}, errors.New("no such item")
				}
				delete(s.items, id)
				return external.DeleteResponse{}, nil
			}}, marked, "Delete of what does not exist succeeds", "it must succeed",
		},
		"a Delete that does nothing": {
			good{deletes: func(*store, string) (external.DeleteResponse, error) { return external.DeleteResponse{Gone: true}, nil }}, marked, "change tier", "shows the resource nevertheless",
		},
		"names that are not unique": {
			good{creates: func(s *store, r external.CreateRequest[*thing.Thing, *store]) (external.CreateResponse[item], error) {
				delete(s.items, r.ID)
				return add(s, r.ID, r)
			}}, marked, "Create for another object takes nothing over", "the ownership mark of the resource has",
		},
		"tokens that mean nothing": {
			good{creates: func(s *store, r external.CreateRequest[*thing.Thing, *store]) (external.CreateResponse[item], error) {
				return add(s, fmt.Sprintf("i-%d", len(s.items)), r)
			}}, options{AssignedIDs: true, Tokens: true}, "Create again makes no second resource", "made another resource",
		},
		"a Find that finds nothing": {
			able{good{assigned: true}, func() []external.Found { return nil }}, options{AssignedIDs: true}, "Find finds it by its mark", "but not the resource",
		},
		"a panic": {
			good{updates: func(*store, external.UpdateRequest[*thing.Thing, *store, item]) error { panic("out of ink") }}, marked, "change size", "out of ink",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fixtureOf(test.options)
			results := externaltest.Check(t.Context(), test.driver, f)
			i := slices.IndexFunc(results, func(r externaltest.Result) bool { return r.Err != nil })
			if i < 0 {
				t.Fatalf("nothing was found: %+v", results)
			}
			if got := results[i]; got.Name != test.check || !strings.Contains(got.Err.Error(), test.says) {
				t.Errorf("%q said: %v", got.Name, got.Err)
			}
		})
	}
}
