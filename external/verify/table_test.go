package verify_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/external/verify"
	"github.com/trimtab-dev/trimtab/internal/shelf"
)

// scripted answers one call per gadget and method differently from what the API would.
type scripted struct {
	mu sync.Mutex
	by map[string]func(shelf.Call) *shelf.Answer
}

func script(api *shelf.API) *scripted {
	s := &scripted{by: map[string]func(shelf.Call) *shelf.Answer{}}
	api.On(func(c shelf.Call) *shelf.Answer {
		s.mu.Lock()
		f := s.by[c.Name]
		s.mu.Unlock()
		if f == nil {
			return nil
		}
		return f(c)
	})
	return s
}

func (s *scripted) set(name string, f func(shelf.Call) *shelf.Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by[name] = f
}

// verified lets Verify answer for a gadget until something else was called.
func verified(api *shelf.API, name string, r verify.VerifyResponse, err error) func(shelf.Call) *shelf.Answer {
	before := api.Changes(name)
	return func(c shelf.Call) *shelf.Answer {
		if c.Method != "Verify" || api.Changes(name) > before {
			return nil
		}
		return &shelf.Answer{Verify: r, Err: err}
	}
}

// reach brings gadgets into a state of the table.
func (w *operatorTest) reach(s *scripted, state string, names []string) {
	w.t.Helper()
	for _, name := range names {
		switch state {
		case "P":
			w.api.Put(name, &shelf.Item{Size: 1}) // it is adopted
			continue
		case "V":
			s.set(name, func(c shelf.Call) *shelf.Answer {
				if c.Method == "Create" {
					return &shelf.Answer{Apply: verify.ApplyResponse{Result: verify.ApplyResultAwaitingVerification}, After: true}
				}
				return nil
			})
		}
		w.create(name, adopting)
	}
	switch state {
	case "V":
		w.all(names, verify.Verifying)
	case "F":
		w.all(names, verify.Succeeded)
		for _, name := range names {
			s.set(name, func(shelf.Call) *shelf.Answer {
				return &shelf.Answer{Verify: verify.VerifyResponse{Result: isError, Message: "not yet"}}
			})
			w.poke(name, "failed")
		}
		w.all(names, verify.Failed)
	case "S":
		w.all(names, verify.Succeeded)
	case "T": // as a restore from a backup leaves it
		w.all(names, verify.Succeeded)
		w.stop()
		for _, name := range names {
			g := w.get(name)
			g.Status.State = string(verify.Terminating)
			if err := w.admin.Status().Update(w.t.Context(), g); err != nil {
				w.t.Fatal(err)
			}
		}
		w.start()
	}
}

func (w *operatorTest) all(names []string, s verify.ReconcileState) {
	w.t.Helper()
	for _, name := range names {
		w.is(name, s)
	}
}

// changesOf are the calls for a gadget that change something.
func (w *operatorTest) changesOf(name string) string {
	var calls []string
	for _, c := range w.api.Calls("", name) {
		if c.Method != "Verify" {
			calls = append(calls, c.Method)
		}
	}
	return strings.Join(calls, " ")
}

// cell is a row of the table of Verify.
type cell struct {
	what   string
	verify verify.VerifyResponse
	err    error
	// may are the permissions.
	may string
	// want are the state and a part of the message, calls what is called beside Verify, and through the state that is gone
	// through.
	want    verify.ReconcileState
	says    string
	through verify.ReconcileState
	calls   string
}

func cells() []cell {
	answers := func(r verify.VerifyResult) verify.VerifyResponse {
		return verify.VerifyResponse{Result: r, Message: "as the script says"}
	}
	return []cell{
		{what: "an error", err: errors.New("no light"), may: "CUD", want: verify.Failed, says: "no light; change the object to try again"},
		{what: "Error", verify: answers(isError), may: "CUD", want: verify.Failed, says: "as the script says"},
		{what: "unknown", verify: answers("Perhaps"), may: "CUD", want: verify.Failed, says: `invalid VerifyResult: Verify returned "Perhaps", which is not one of ["Missing"`},
		{what: "none", may: "CUD", want: verify.Failed, says: `invalid VerifyResult: Verify returned ""`},
		{what: "Deleting", verify: answers(deleting), may: "CUD", want: verify.Verifying, says: "is being deleted outside the operator"},
		{what: "Ready", verify: answers(isReady), may: "CUD", want: verify.Succeeded, says: "matches the spec"},
		{what: "Missing with C", verify: answers(missing), may: "C", want: verify.Succeeded, through: verify.Creating, calls: "Create"},
		{what: "Missing without C", verify: answers(missing), may: "UD", want: verify.Failed, says: "permission to create external resource is not set"},
		{what: "InProgress", verify: answers(inProgress), may: "CUD", want: verify.Verifying, says: "is not ready yet: as the script says"},
		{what: "UpdateRequired with U", verify: answers(updateRequired), may: "U", want: verify.Succeeded, through: verify.Updating, calls: "Update"},
		{what: "UpdateRequired without U", verify: answers(updateRequired), may: "CD", want: verify.Failed, says: "permission to update external resource is not set"},
		{what: "RecreateRequired with C and D", verify: answers(recreate), may: "CD", want: verify.Succeeded, through: verify.Recreating, calls: "Delete Create"},
		{what: "RecreateRequired without D", verify: answers(recreate), may: "CU", want: verify.Failed, says: "permission to delete or recreate external resource is not set"},
		{what: "RecreateRequired with D but not C", verify: answers(recreate), may: "UD", want: verify.Failed, says: "permission to delete or recreate external resource is not set"},
	}
}

// TestTransitions plays each result of Verify in each state.
func TestTransitions(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"P", "V", "S", "F", "T"} {
		t.Run("E1-25 in state "+state, func(t *testing.T) {
			t.Parallel()
			// No pass but those that events cause: one that nobody asked for may not know the permissions yet.
			w := newOperatorTest(t, &shelf.API{}, func(o *options) { o.RequeueAfter, o.RequeueAfterFailure = time.Hour, -1 })
			s := script(w.api)
			var names []string
			for i := range cells() {
				names = append(names, fmt.Sprintf("g%d", i))
			}
			w.reach(s, state, names)
			for i, test := range cells() {
				t.Run(test.what, func(t *testing.T) { w.transition(t, s, state, names[i], test) })
			}
		})
	}
}

// transition plays one result of Verify for a gadget.
func (w *operatorTest) transition(t *testing.T, s *scripted, state, name string, test cell) {
	t.Helper()
	if state != "P" {
		w.patch(name, fmt.Sprintf(`{"metadata":{"annotations":{"trimtab.dev/access-permissions":%q}}}`, test.may))
	}
	before, passed, looks := w.changesOf(name), len(w.transitions(name)), len(w.api.Calls("Verify", name))
	s.set(name, verified(w.api, name, test.verify, test.err))
	if state == "P" {
		w.create(name, adopting, permitted(test.may))
	} else {
		w.poke(name, "now")
	}
	want := strings.TrimSpace(before + " " + test.calls)
	w.until("another look, and the calls "+want, func() bool {
		return len(w.api.Calls("Verify", name)) > looks && w.changesOf(name) == want
	})
	w.says(name, test.want, test.says)
	if through := w.transitions(name)[passed:]; test.through != "" && !slices.Contains(through, test.through) {
		t.Errorf("went through %q, not %s", through, test.through)
	}
	if got := w.changesOf(name); got != want {
		t.Errorf("calls %q, want %q", got, want)
	}
}
