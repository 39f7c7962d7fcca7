package verify_test

import (
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/external/verify"
	"github.com/trimtab-dev/trimtab/internal/shelf"
)

const (
	missing        = verify.VerifyResultMissing
	recreate       = verify.VerifyResultRecreateRequired
	updateRequired = verify.VerifyResultUpdateRequired
	inProgress     = verify.VerifyResultInProgress
	isReady        = verify.VerifyResultReady
	isError        = verify.VerifyResultError
	deleting       = verify.VerifyResultDeleting
)

// had checks the states that a gadget has had in its API.
func (w *operatorTest) had(name string, want ...verify.VerifyResult) {
	w.t.Helper()
	if got := w.api.States(name); !slices.Equal(got, want) {
		w.t.Errorf("gadget %q was %q, want %q", name, got, want)
	}
}

// failing lets one method fail for one gadget.
func failing(method, name, why string) func(shelf.Call) *shelf.Answer {
	return func(c shelf.Call) *shelf.Answer {
		if c.Method == method && c.Name == name {
			return &shelf.Answer{Err: errors.New(why)}
		}
		return nil
	}
}

// TestScenarios plays what Operatify's own suite of 19 tests plays, under its names.
func TestScenarios(t *testing.T) {
	t.Parallel()
	t.Run("E1-30 Test Create and Delete", createAndDelete)
	t.Run("E1-30 Test Dependencies", dependencies)
	t.Run("E1-30 Test Failure Scenarios", failureScenarios)
	t.Run("E1-30 Test permissions", permissions)
	t.Run("E1-30 Test Update and Recreate", updateAndRecreate)
}

func createAndDelete(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		create, remove    int
		made, madeAndGone []verify.VerifyResult
	}{
		"1 should create asynchronously and delete asynchronously": {2, 2, []verify.VerifyResult{inProgress, isReady}, []verify.VerifyResult{inProgress, isReady, deleting, missing}},
		"2 should create synchronously and delete asynchronously":  {0, 2, []verify.VerifyResult{isReady}, []verify.VerifyResult{isReady, deleting, missing}},
		"3 should create asynchronously and delete synchronously":  {2, 0, []verify.VerifyResult{inProgress, isReady}, []verify.VerifyResult{inProgress, isReady, missing}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newOperatorTest(t, &shelf.API{Async: map[string]int{"Create": test.create, "Delete": test.remove}})
			w.create("a")
			w.is("a", verify.Succeeded)
			w.had("a", test.made...)
			w.delete("a")
			w.gone("a")
			w.had("a", test.madeAndGone...)
			if n := w.api.Changes("a"); n != 2 {
				t.Errorf("%d changes, want a create and a delete", n)
			}
		})
	}
}

func dependencies(t *testing.T) {
	t.Parallel()
	owned := func(g *gadget) { g.Spec.Owner = "a" }
	t.Run("4 should do nothing until dependency is created", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, &shelf.API{})
		w.create("b", owned)
		w.says("b", verify.Pending, "a: it does not exist")
		if calls := w.api.Calls("", "b"); len(calls) > 0 {
			t.Errorf("calls %+v", calls)
		}
		w.create("a")
		w.is("b", verify.Succeeded)
		w.delete("a") // the garbage collector deletes what it owns
		w.gone("b")
		if w.api.Get("b") != nil {
			t.Error("the gadget is still there")
		}
	})
	t.Run("5 should go back to pending if a dependency fails", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, &shelf.API{})
		w.create("a")
		w.create("b", owned)
		w.is("b", verify.Succeeded)
		w.api.On(failing("Update", "a", "the shelf fell down"))
		w.patch("a", `{"spec":{"size":2}}`)
		w.says("a", verify.Failed, "the shelf fell down")
		w.patch("b", `{"spec":{"size":7}}`)
		w.says("b", verify.Pending, "a: it")
		w.await("b", "an observation of the new spec", func(g *gadget) bool { return g.Status.ObservedGeneration == g.Generation })
		if n := w.api.Changes("b"); n != 1 {
			t.Errorf("%d changes of what waits", n)
		}
		w.delete("b")
		w.gone("b")
	})
	t.Run("and while a dependency does not match its own spec", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, &shelf.API{})
		w.create("a")
		w.create("b", owned)
		w.is("b", verify.Succeeded)
		w.patch("a", `{"metadata":{"annotations":{"trimtab.dev/paused":"true"}},"spec":{"size":2}}`)
		w.says("b", verify.Pending, "a: it")
		w.patch("a", `{"metadata":{"annotations":{"trimtab.dev/paused":null}}}`)
		w.is("b", verify.Succeeded)
	})
	t.Run("6 should do nothing until all additional dependencies are created", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, &shelf.API{})
		w.create("a")
		w.create("same")
		w.create("b", owned, func(g *gadget) { g.Spec.Gadget, g.Spec.ConfigMap = "same", "same" })
		w.says("b", verify.Pending, "ConfigMap "+w.namespace+"/same: it does not exist")
		if calls := w.api.Calls("", "b"); len(calls) > 0 {
			t.Errorf("calls %+v", calls)
		}
		if err := w.admin.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "same"}}); err != nil {
			t.Fatal(err)
		}
		w.is("b", verify.Succeeded)
	})
}

func failureScenarios(t *testing.T) {
	t.Parallel()
	t.Run("7 should fail if fails to create", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, &shelf.API{}, func(o *options) { o.RequeueAfterFailure = -1 })
		w.api.On(failing("Create", "a", "no space"))
		w.create("a")
		w.says("a", verify.Failed, "cannot create gadget \"a\": no space; ")
		if n := len(w.api.Calls("Create", "a")); n != 1 {
			t.Errorf("%d creates without a retry", n)
		}
		w.delete("a")
		w.gone("a")
		w.create("b")
		w.is("b", verify.Succeeded)
		w.api.On(func(c shelf.Call) *shelf.Answer {
			if c.Method == "Delete" && c.N < 3 {
				return &shelf.Answer{Err: errors.New("try later")}
			}
			return nil
		})
		w.delete("b") // which is tried again: nobody would do it otherwise
		w.gone("b")
		if w.api.Get("b") != nil {
			t.Error("left behind")
		}
	})
	t.Run("8 fails to complete async creation", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, &shelf.API{Async: map[string]int{"Create": 1, "Delete": 1}})
		w.api.On(func(c shelf.Call) *shelf.Answer {
			if c.Method == "Verify" && c.N >= 3 && len(w.api.Calls("Delete", "a")) == 0 { // Missing, InProgress, Error
				return &shelf.Answer{Verify: verify.VerifyResponse{Result: isError, Message: "the glue did not hold"}}
			}
			return nil
		})
		w.create("a")
		w.says("a", verify.Failed, "the glue did not hold")
		w.had("a", inProgress, isError)
		w.delete("a")
		w.gone("a")
		w.had("a", inProgress, isError, deleting, missing)
	})
	t.Run("9 fails to verify creation after completing async creation", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, &shelf.API{Async: map[string]int{"Create": 1}})
		w.api.On(func(c shelf.Call) *shelf.Answer {
			if c.Method == "Verify" && c.N >= 3 {
				return &shelf.Answer{Err: errors.New("the light is out")}
			}
			return nil
		})
		w.create("a")
		w.says("a", verify.Failed, "cannot observe gadget \"a\": the light is out; retrying")
		w.api.On(nil)
		w.is("a", verify.Succeeded) // nobody did anything
		w.delete("a")
		w.gone("a")
	})
	t.Run("10 should fail if fails to update", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, &shelf.API{})
		w.create("a")
		w.is("a", verify.Succeeded)
		w.api.On(failing("Update", "a", "it is nailed down"))
		w.patch("a", `{"spec":{"size":2}}`)
		w.says("a", verify.Failed, "cannot update gadget \"a\": it is nailed down; retrying")
		w.api.On(nil)
		w.is("a", verify.Succeeded)
		if got := w.api.Get("a"); got.Size != 2 {
			t.Errorf("size %d", got.Size)
		}
	})
	t.Run("11 should fail if fails to delete and recreate", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, &shelf.API{})
		w.create("a")
		w.create("b", permitted("D"), adopting)
		w.is("a", verify.Succeeded)
		w.api.On(failing("Delete", "a", "it is stuck"))
		w.patch("a", `{"spec":{"tier":"gold"}}`)
		w.says("a", verify.Failed, "cannot delete gadget \"a\": it is stuck; retrying")
		if w.api.Get("a") == nil || len(w.api.Calls("Create", "a")) != 1 {
			t.Error("it was created again before it was gone")
		}
		w.api.On(failing("Delete", "a", "it is still stuck"))
		w.delete("a")
		w.says("a", verify.Terminating, "cannot delete gadget \"a\": it is still stuck; retrying") // and not gone, with its gadget left behind
		w.api.On(nil)
		w.gone("a")
		if w.api.Get("a") != nil {
			t.Error("the gadget was left behind")
		}
		w.api.Put("b", &shelf.Item{Size: 1, Tier: "tin"}) // with D alone, it is not deleted in order to recreate it
		w.poke("b", "1")
		w.says("b", verify.Failed, "permission to delete or recreate external resource is not set")
		if w.api.Get("b") == nil {
			t.Error("deleted, and not created again")
		}
	})
}

func permissions(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, &shelf.API{})
	t.Run("12 should create if create permission is present", func(t *testing.T) {
		w.create("p12", permitted("C"))
		w.is("p12", verify.Succeeded)
		if n := len(w.api.Calls("Create", "p12")); n != 1 {
			t.Errorf("%d creates", n)
		}
	})
	t.Run("13 should stop creating if create permission is missing", func(t *testing.T) {
		w.create("p13", permitted("none"))
		got := w.says("p13", verify.Failed, "permission to create external resource is not set")
		if n := w.api.Changes("p13"); n != 0 {
			t.Errorf("%d changes; %s", n, got.Status.Message)
		}
	})
	t.Run("14 should update if update permission is present", func(t *testing.T) {
		w.create("p14", permitted("CU"))
		w.is("p14", verify.Succeeded)
		w.patch("p14", `{"spec":{"size":2}}`)
		w.is("p14", verify.Succeeded)
		w.had("p14", isReady, updateRequired, isReady)
	})
	t.Run("15 should fail to update if update permission is absent", func(t *testing.T) {
		w.create("p15", permitted("C"))
		w.is("p15", verify.Succeeded)
		w.patch("p15", `{"spec":{"size":2}}`)
		got := w.says("p15", verify.Failed, "permission to update external resource is not set: spec.size")
		if len(w.api.Calls("Update", "p15")) > 0 || ready(got) != "True" {
			t.Errorf("updated, or what works is not Ready: %+v", got.Status)
		}
	})
	t.Run("16 should delete if delete permission is present", func(t *testing.T) {
		w.create("p16", permitted("CD"))
		w.is("p16", verify.Succeeded)
		w.delete("p16")
		w.gone("p16")
		w.had("p16", isReady, missing)
	})
	t.Run("17 should leave the underlying resource alone when deleting if delete permission is not present", func(t *testing.T) {
		w.create("p17", permitted("C"))
		w.is("p17", verify.Succeeded)
		w.delete("p17")
		w.gone("p17")
		w.had("p17", isReady)
		if w.api.Get("p17") == nil {
			t.Error("it was deleted")
		}
	})
}

func updateAndRecreate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		update int
		want   []verify.VerifyResult
	}{
		"18 should update synchronously":  {0, []verify.VerifyResult{inProgress, isReady, updateRequired, isReady}},
		"19 should update asynchronously": {2, []verify.VerifyResult{inProgress, isReady, updateRequired, inProgress, isReady}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newOperatorTest(t, &shelf.API{Async: map[string]int{"Create": 1, "Update": test.update}})
			w.create("a")
			w.is("a", verify.Succeeded)
			w.patch("a", `{"spec":{"size":2}}`)
			w.is("a", verify.Succeeded)
			w.had("a", test.want...)
			if c, u := len(w.api.Calls("Create", "a")), len(w.api.Calls("Update", "a")); c != 1 || u != 1 {
				t.Errorf("%d creates, %d updates", c, u)
			}
		})
	}
	for name, polls := range map[string]int{"synchronously": 0, "asynchronously": 2} {
		t.Run("and recreate "+name, func(t *testing.T) {
			t.Parallel()
			w := newOperatorTest(t, &shelf.API{Async: map[string]int{"Create": polls, "Delete": polls}})
			w.create("a")
			w.is("a", verify.Succeeded)
			w.patch("a", `{"spec":{"tier":"gold"}}`)
			w.is("a", verify.Succeeded)
			if got := w.api.Get("a"); got.Tier != "gold" {
				t.Errorf("%+v", got)
			}
			calls := ""
			for _, c := range w.api.Calls("", "a") {
				if c.Method != "Verify" {
					calls += c.Method + " "
				}
			}
			if calls != "Create Delete Create " {
				t.Errorf("calls %s", calls)
			}
		})
	}
	t.Run("and what somebody else has deleted is created again", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, &shelf.API{})
		w.create("a")
		w.is("a", verify.Succeeded)
		w.api.Put("a", nil)
		w.poke("a", "1")
		w.until("it again", func() bool { return w.api.Get("a") != nil })
	})
}
