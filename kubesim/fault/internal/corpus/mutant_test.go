package corpus

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// Each mutant breaks one invariant and no other; that is what makes the invariant worth
// having. Two break another one too: what is left at the external API for good differs from the state without
// the disturbance (I1), and a record kept in the status can be forged there (I19), or not be seen for a while, so that
// machines come and go (I13). The short form plays some schedules of the kinds that show them.
func TestMutants(t *testing.T) {
	const shortly = 40 // schedules of each kind that the short form plays
	settings := settingsOf(item())
	settings.Data = map[string]string{"mine": "yes"}
	undisturbed, faults := []fault.Kind{fault.Duplicates}, []fault.Kind{fault.Faults}
	for name, test := range map[string]struct {
		bug  Bug
		want string
		// roles is the folder with the operator's roles; an administrator without.
		roles string
		// before comes first in the story.
		before []fault.Step
		// secrets belong into Secrets alone.
		secrets []string
		// quiet has no user who acts between steps.
		quiet bool
		// at is what is played: where the undisturbed run finds the bug, one kind is enough.
		at []fault.Kind
		// short is what the short form plays of the others.
		short []fault.Kind
	}{
		"I1":                              {bug: OnceOnly, want: "I1", short: faults},
		"I1 of a status that is believed": {bug: BelievesReady, want: "I1", short: []fault.Kind{fault.Forgeries}},
		"I2":                              {bug: ForgetsSpare, want: "I2", at: undisturbed},
		"I2 of what a delete took":        {bug: ForgetsTaken, want: "I1 I2", short: []fault.Kind{fault.Overtaken, fault.Crashes}},
		"I3":                              {bug: CreatesBlindly, want: "I13 I19 I3", short: []fault.Kind{fault.Faults, fault.Delays, fault.Forgeries}},
		"I4":                              {bug: LateFinalizer, want: "I4", quiet: true, at: undisturbed},
		"I5":                              {bug: Heartbeat, want: "I5", at: undisturbed},
		"I6":                              {bug: KeepsFinalizer, want: "I6", at: undisturbed},
		"I7":                              {bug: TakesItBack, want: "I7", short: faults},
		"I8":                              {bug: ReadyTooEarly, want: "I8", at: undisturbed},
		"I8 of one that is ready":         {bug: HidesReady, want: "I8", at: undisturbed},
		"I9":                              {bug: NewTransition, want: "I9", at: undisturbed},
		"I10":                             {bug: TakesOver, before: []fault.Step{fault.Create(settings)}, want: "I10", at: undisturbed},
		"I13":                             {bug: HotLoop, want: "I13", short: faults},
		"I14":                             {bug: QuotesErrors, secrets: []string{"hunter2"}, want: "I14", short: faults},
		"I15":                             {bug: PeeksUnallowed, roles: "roles", want: "I15", short: []fault.Kind{fault.Crashes, fault.Faults}},
		"I17":                             {bug: LeaksGoroutine, want: "I17", short: faults},
		"I19":                             {bug: PraisesFailure, want: "I19", short: faults},
	} {
		t.Run(name, func(t *testing.T) {
			s := story("mutant "+name, SetupRenter(test.bug))
			if test.roles != "" {
				s.Operator.RBAC = manifests(test.roles)
			}
			at := test.at
			if at == nil && !deep() {
				at = test.short
			}
			options := []fault.Option{fault.Only(at...)}
			if test.at == nil && at != nil {
				options = append(options, fault.AtMost(shortly, at...))
			}
			s.Secrets = test.secrets
			s.Steps = append(test.before, s.Steps...)
			if test.quiet {
				s.Races = []fault.Step{}
			}
			if diff := cmp.Diff(strings.Fields(test.want), exploreWith(t, s, options...).broken); diff != "" {
				t.Errorf("%q: broken invariants (-want +got):\n%s", test.bug, diff)
			}
		})
	}
}
