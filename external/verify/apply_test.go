package verify_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/external/verify"
	"github.com/trimtab-dev/trimtab/internal/shelf"
)

// applied are the results of Create and of Update, and what they lead to.
func applied() []struct {
	what   string
	answer shelf.Answer
	want   verify.ReconcileState
	says   string
} {
	result := func(r verify.ApplyResult) shelf.Answer {
		return shelf.Answer{Apply: verify.ApplyResponse{Result: r}, After: r == verify.ApplyResultSucceeded}
	}
	return []struct {
		what   string
		answer shelf.Answer
		want   verify.ReconcileState
		says   string
	}{
		{"AwaitingVerification", result(verify.ApplyResultAwaitingVerification), verify.Verifying, "is not ready yet: the external system is working on it"},
		{"Succeeded", result(verify.ApplyResultSucceeded), verify.Succeeded, "matches the spec"},
		{"Error", result(verify.ApplyResultError), verify.Failed, "returned Error, and no error that says why"},
		{"an error", shelf.Answer{Err: errors.New("no space")}, verify.Failed, "no space"},
		{"another word", result("Perhaps"), verify.Failed, `invalid response: `},
		{"none", result(""), verify.Failed, `returned "", which is not one of ["AwaitingVerification" "Succeeded" "Error"]`},
	}
}

func TestApply(t *testing.T) {
	t.Parallel()
	patient := func(o *options) { o.RequeueAfter, o.RequeueAfterFailure = time.Hour, -1 }
	for id, method := range map[string]string{"E1-23": "Create", "E1-24": "Update"} {
		t.Run(id+" the results of "+method, func(t *testing.T) {
			t.Parallel()
			w := newOperatorTest(t, &shelf.API{}, patient)
			s := script(w.api)
			for i, test := range applied() {
				name := fmt.Sprintf("g%d", i)
				if method == "Update" {
					w.create(name)
					w.is(name, verify.Succeeded)
				}
				s.set(name, func(c shelf.Call) *shelf.Answer {
					if c.Method == method {
						return &test.answer
					}
					return nil
				})
				t.Run(test.what, func(t *testing.T) {
					if method == "Update" {
						w.patch(name, `{"spec":{"size":2}}`)
					} else {
						w.create(name)
					}
					w.calls(method, name, 1)
					got := w.await(name, fmt.Sprintf("%s and %q", test.want, test.says), func(g *gadget) bool {
						return verify.StateOf(g) == test.want && strings.Contains(g.Status.Message, test.says) && g.Status.ObservedGeneration == g.Generation
					})
					if is := test.want == verify.Succeeded; is != (ready(got) == "True" && got.Status.AppliedGeneration == got.Generation) {
						t.Errorf("conditions %+v", got.Status.Conditions)
					}
				})
			}
		})
	}
	t.Run("E1-23 Completing after Succeeded, if there is something left to do", func(t *testing.T) {
		t.Parallel()
		completes(t, func(w *operatorTest) { w.create("a") })
	})
	t.Run("E1-24 Completing after Succeeded, if there is something left to do", func(t *testing.T) {
		t.Parallel()
		completes(t, func(w *operatorTest) {
			w.create("a")
			w.says("a", verify.Completing, "cannot finish gadget \"a\" yet: the label is being printed; retrying")
			w.patch("a", `{"spec":{"size":2}}`)
			w.calls("Update", "a", 1)
		})
	})
}

// completes makes something whose success handler takes its time.
func completes(t *testing.T, begin func(*operatorTest)) {
	t.Helper()
	printed := make(chan struct{})
	w := newOperatorTest(t, &shelf.API{}, func(o *options) {
		o.OnSuccess = func(_ context.Context, r verify.SuccessRequest[*gadget]) error {
			select {
			case <-printed:
				return nil
			default:
				return external.NotReady(errors.New("the label is being printed"), 20*time.Millisecond)
			}
		}
	})
	begin(w)
	got := w.says("a", verify.Completing, "cannot finish gadget \"a\" yet: the label is being printed; retrying")
	if ready(got) == "True" || strings.Contains(fmt.Sprint(w.events("a")), `"Warning"`) {
		t.Errorf("Ready, or a warning: %+v, events %s", got.Status.Conditions, w.events("a"))
	}
	close(printed)
	w.is("a", verify.Succeeded)
}

func TestDeletions(t *testing.T) {
	t.Parallel()
	answers := func(r verify.VerifyResult) *shelf.Answer {
		return &shelf.Answer{Verify: verify.VerifyResponse{Result: r}}
	}
	deleted := func(r verify.DeleteResult) *shelf.Answer { return &shelf.Answer{Delete: r} }
	broken := &shelf.Answer{Err: errors.New("no light")}
	type row struct {
		what string
		may  string
		// verify and remove are what Verify and Delete answer until kept is checked; nil is what the API would say.
		verify, remove *shelf.Answer
		// kept is a part of the message while the finalizer stays; empty if it is removed at once.
		kept string
		// deletes: Delete is called before kept is checked. left: the gadget stays.
		deletes, left bool
	}
	rows := []row{
		{what: "Missing", may: "CUD", verify: answers(missing), left: true},
		{what: "Missing, with an error", may: "CUD", verify: &shelf.Answer{Verify: verify.VerifyResponse{Result: missing}, Err: errors.New("no light")}, kept: "cannot observe gadget"},
		{what: "Deleting", may: "CUD", verify: answers(deleting), kept: "deleting gadget"},
		{what: "an error, with D", may: "CUD", verify: broken, kept: "no light; retrying"},
		{what: "unknown, with D", may: "CUD", verify: answers("Perhaps"), kept: "invalid VerifyResult"},
		{what: "an error, without D", may: "CU", verify: broken, left: true},
		{what: "Ready, without D", may: "CU", verify: answers(isReady), left: true},
		{what: "InProgress, without D", may: "CU", verify: answers(inProgress), left: true},
		{what: "Delete fails", may: "D", remove: broken, kept: "cannot delete gadget", deletes: true},
		{what: "Delete returns Error", may: "D", remove: deleted(verify.DeleteResultError), kept: "Delete returned Error, and no error that says why", deletes: true},
		{what: "Delete returns another word", may: "D", remove: deleted("Perhaps"), kept: `invalid DeleteResult: Delete returned "Perhaps"`, deletes: true},
		{what: "AlreadyDeleted, and Verify does not agree", may: "D", remove: deleted(verify.DeleteResultAlreadyDeleted), kept: "deleting gadget", deletes: true},
		{what: "Succeeded, and Verify does not agree", may: "D", remove: deleted(verify.DeleteResultSucceeded), kept: "deleting gadget", deletes: true},
		{what: "AwaitingVerification", may: "D", remove: deleted(verify.DeleteResultAwaitingVerification), kept: "deleting gadget", deletes: true},
		{what: "Succeeded", may: "D", deletes: true},
	}
	for _, r := range []verify.VerifyResult{isReady, inProgress, isError, updateRequired, recreate} {
		rows = append(rows, row{
			what: string(r) + ", with D", may: "D", verify: answers(r), remove: deleted(verify.DeleteResultAwaitingVerification), kept: "deleting gadget", deletes: true,
		})
	}
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprintf("E1-26 deletions, already Terminating: %t", again), func(t *testing.T) {
			t.Parallel()
			w := newOperatorTest(t, &shelf.API{})
			s := script(w.api)
			for i := range rows {
				w.create(fmt.Sprintf("g%d", i), permitted("CUD"))
			}
			for i, test := range rows {
				name := fmt.Sprintf("g%d", i)
				t.Run(test.what, func(t *testing.T) {
					w.is(name, verify.Succeeded)
					w.patch(name, fmt.Sprintf(`{"metadata":{"annotations":{"trimtab.dev/access-permissions":%q}}}`, test.may))
					if again { // it is Terminating when the test begins
						s.set(name, func(c shelf.Call) *shelf.Answer {
							if c.Method == "Delete" {
								return &shelf.Answer{Err: errors.New("wait for it")}
							}
							return nil
						})
						if !strings.Contains(test.may, "D") { // otherwise the object would be gone
							w.patch(name, `{"metadata":{"annotations":{"trimtab.dev/access-permissions":"CUD"}}}`)
						}
						w.delete(name)
						w.says(name, verify.Terminating, "wait for it")
						// First the permissions, because the deletion is tried again and again meanwhile.
						w.patch(name, fmt.Sprintf(`{"metadata":{"annotations":{"trimtab.dev/access-permissions":%q}}}`, test.may))
					}
					before := len(w.api.Calls("Delete", name))
					s.set(name, func(c shelf.Call) *shelf.Answer {
						switch c.Method {
						case "Verify":
							return test.verify
						case "Delete":
							if test.left { // it is not called, except by a pass that began before
								return broken
							}
							return test.remove
						}
						return nil
					})
					if !again {
						w.delete(name)
					}
					if test.deletes {
						w.calls("Delete", name, before+1)
					}
					if test.kept != "" {
						w.says(name, verify.Terminating, test.kept)
						s.set(name, nil) // all is well again
					}
					w.gone(name)
					if left := w.api.Get(name) != nil; left != test.left {
						t.Errorf("left behind: %t", left)
					}
					if n := len(w.api.Calls("Delete", name)) - before; !test.deletes && test.left && n > 0 && !again {
						t.Errorf("%d deletes", n)
					}
				})
			}
		})
	}
}
