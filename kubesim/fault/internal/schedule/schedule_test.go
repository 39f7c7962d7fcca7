package schedule_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		why      string
		schedule schedule.Schedule
		token    string
	}{
		"undisturbed":  {"a finding without a disturbance is replayed too", nil, "v1/a b/c/"},
		"one":          {"names of scenarios may hold slashes", schedule.Schedule{{Kind: schedule.CrashAfter, At: 7}}, "v1/a b/c/crash-after@7"},
		"a race":       {"it is one of several", schedule.Schedule{{Kind: schedule.Race, At: 12, Arg: "1"}}, "v1/a b/c/race@12(1)"},
		"an old cache": {"it is so many changes old", schedule.Schedule{{Kind: schedule.OldCache, At: 9, Arg: "6"}}, "v1/a b/c/old-cache@9(6)"},
		"a late write": {"it arrives so many calls later", schedule.Schedule{{Kind: schedule.LateWrite, At: 7, Arg: "3"}}, "v1/a b/c/late-write@7(3)"},
		"two":          {"pairs", schedule.Schedule{{Kind: schedule.CrashAfter, At: 7}, {Kind: schedule.Twice, At: 1}}, "v1/a b/c/crash-after@7+twice@1"},
		"a slow call":  {"it takes so long", schedule.Schedule{{Kind: schedule.SlowAnswer, At: 3, Arg: "1h"}}, "v1/a b/c/slow-answer@3(1h)"},
		"a drift":      {"it is one of those of a step", schedule.Schedule{{Kind: schedule.Drift, At: 2, Arg: "1"}}, "v1/a b/c/drift@2(1)"},
		"a status":     {"an argument may be a word", schedule.Schedule{{Kind: schedule.Contended, At: 3, Arg: "status"}}, "v1/a b/c/contended@3(status)"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tt.schedule.Token("a b/c"); got != tt.token {
				t.Errorf("%s: token is %q, want %q", tt.why, got, tt.token)
			}
			scenario, s, err := schedule.Parse(tt.token)
			if err != nil || scenario != "a b/c" || !slices.Equal(s, tt.schedule) {
				t.Errorf("%s: parsed as %q %v %v", tt.why, scenario, s, err)
			}
		})
	}
	const want = `replay token "v1/a/bogus@2": there is no kind "bogus"; the kinds are closed, conflict, `
	if _, _, err := schedule.Parse("v1/a/bogus@2"); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("an unknown kind gave %v", err)
	} else {
		_, all, _ := strings.Cut(err.Error(), "the kinds are ")
		for kind := range strings.SplitSeq(all, ", ") {
			if _, _, err := schedule.Parse("v1/a/" + kind + "@2"); err != nil {
				t.Errorf("a kind that there is said to be: %v", err)
			}
		}
	}
	for _, bad := range []string{"", "v2/a/crash-after@7", "v1/crash-after@7x", "v1/a/@7", "v1/a/crash-after@x", "v1/a/nokind@1"} {
		if _, _, err := schedule.Parse(bad); err == nil {
			t.Errorf("token %q was taken", bad)
		}
	}
}
