package hours

import (
	"errors"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trimtab-dev/trimtab/external/verify"
	"github.com/trimtab-dev/trimtab/internal/shelf"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

// gadgets runs a test in simulated time, with an operator of gadgets of which there is one, "a".
func gadgets(t *testing.T, api *shelf.API, o verify.Options[*thing.Gadget], f func(*simulation)) {
	t.Helper()
	inHoursOf(t, nil, func(w *simulation) {
		must(t, w.client.Create(w.t.Context(), &thing.Gadget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Spec: thing.GadgetSpec{Size: 1}}))
		f(w)
	}, func(w *simulation) {
		w.more = func(mgr manager.Manager) error {
			o.Loop.Retry.Jitter = -1
			o.Loop.Name = w.name + "-gadgets"
			c, err := verify.New(api, verify.NoDependencies[*thing.Gadget]{}, o)
			if err != nil {
				return err
			}
			return c.SetupWithManager(mgr)
		}
	})
}

// looks are the times between calls of Verify since a moment.
func looks(api *shelf.API, since time.Time) []time.Duration {
	var out []time.Duration
	var last time.Time
	for _, c := range api.Calls("Verify", "a") {
		if c.At.Before(since) {
			continue
		}
		if !last.IsZero() {
			out = append(out, c.At.Sub(last))
		}
		last = c.At
	}
	return out
}

func TestRequeueParameters(t *testing.T) {
	answers := func(r verify.VerifyResult, err error) func(shelf.Call) *shelf.Answer {
		return func(shelf.Call) *shelf.Answer {
			return &shelf.Answer{Verify: verify.VerifyResponse{Result: r}, Err: err}
		}
	}
	type options = verify.Options[*thing.Gadget]
	for name, test := range map[string]struct {
		options options
		answers func(shelf.Call) *shelf.Answer
		// least and most are between two calls of Verify; zero means that there is one, or none.
		least, most time.Duration
	}{
		"in progress":           {options{RequeueAfter: 7 * time.Second}, answers(verify.VerifyResultInProgress, nil), 7 * time.Second, 7 * time.Second},
		"in progress, default":  {options{}, answers(verify.VerifyResultInProgress, nil), 30 * time.Second, 30 * time.Second},
		"being deleted":         {options{RequeueAfter: 7 * time.Second}, answers(verify.VerifyResultDeleting, nil), 7 * time.Second, 7 * time.Second},
		"after success":         {options{RequeueAfterSuccess: 20 * time.Second}, nil, 18 * time.Second, 22 * time.Second},
		"after success, never":  {options{RequeueAfterSuccess: -1}, nil, 0, 0},
		"after success, usual":  {options{}, nil, 9 * time.Minute, 11 * time.Minute},
		"after failure":         {options{RequeueAfterFailure: 20 * time.Second}, answers(verify.VerifyResultError, nil), 20 * time.Second, 22 * time.Second},
		"after an error":        {options{RequeueAfterFailure: 20 * time.Second}, answers("", errors.New("no light")), 20 * time.Second, 22 * time.Second},
		"after failure, never":  {options{RequeueAfterFailure: -1, RequeueAfterSuccess: -1}, answers(verify.VerifyResultError, nil), 0, 0},
		"after an error, never": {options{RequeueAfterFailure: -1, RequeueAfterSuccess: -1}, answers("", errors.New("no light")), 0, 0},
		"after failure, usual":  {options{}, answers(verify.VerifyResultError, nil), 10 * time.Minute, 11 * time.Minute},
	} {
		t.Run("E1-71 "+name, func(t *testing.T) {
			api := &shelf.API{}
			gadgets(t, api, test.options, func(w *simulation) {
				w.pass(time.Minute)
				api.On(test.answers)
				var now thing.Gadget
				must(t, w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "default", Name: "a"}, &now))
				now.Annotations["trimtab.dev/reconcile"] = "1"
				must(t, w.client.Update(w.t.Context(), &now))
				w.pass(time.Hour) // until delays that grow have grown
				since := time.Now()
				w.pass(3 * time.Hour)
				got := looks(api, since)
				switch {
				case test.most == 0 && (len(got) > 0 || len(api.Calls("Verify", "a")) < 2):
					t.Errorf("looks after %s", got)
				case test.most > 0 && (len(got) < int(2*time.Hour/test.most) || slices.Min(got) < test.least || slices.Max(got) > test.most):
					t.Errorf("%d looks, between %s and %s apart", len(got), slices.Min(append(got, 0)), slices.Max(append(got, 0)))
				}
			})
		})
	}
}
