package decide

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/external/internal/record"
)

func TestStanding(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	s := Standing{UID: "b", Since: at(5)}
	tests := map[string]struct {
		why  string
		s, o Standing
		want Rival
	}{
		"an older wish":          {"", s, Standing{UID: "c", Since: at(4)}, RivalHolds},
		"a younger wish":         {"", s, Standing{UID: "a", Since: at(6)}, RivalNone},
		"of the same second":     {"whose record is there was worked on first", s, Standing{UID: "c", Since: at(5), Claimed: at(6)}, RivalHolds},
		"the younger has it":     {"a record before a wish", s, Standing{UID: "c", Since: at(6), Holds: true}, RivalHolds},
		"two records":            {"nothing proves either", Standing{UID: "b", Holds: true}, Standing{UID: "c", Holds: true}, RivalEqual},
		"two records that go":    {"one deletes", Standing{UID: "b", Holds: true, Deleting: true}, Standing{UID: "c", Holds: true, Deleting: true}, RivalNone},
		"the other leaves it":    {"it is to stay", Standing{UID: "b", Holds: true, Deleting: true}, Standing{UID: "c", Holds: true, Deleting: true, Orphans: true}, RivalEqual},
		"at another endpoint":    {"", Standing{UID: "b", Place: record.Place{Endpoint: "x"}}, Standing{UID: "a", Holds: true, Place: record.Place{Endpoint: "y"}}, RivalNone},
		"an endpoint unknown":    {"counts as the same", Standing{UID: "b", Place: record.Place{Endpoint: "x"}}, Standing{UID: "a", Holds: true}, RivalHolds},
		"another's installation": {"endpoints are not told apart", Standing{UID: "b", Place: record.Place{Installation: "x"}}, Standing{UID: "a", Holds: true, Place: record.Place{Installation: "y"}}, RivalNone},
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			if got := test.s.compare(test.o); got != test.want {
				t.Errorf("%s: %d, want %d", test.why, got, test.want)
			}
		})
	}
}

// TestRivalry checks who creates a resource that does not exist.
func TestRivalry(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	tests := map[string]struct {
		why          string
		ours, theirs Standing
		unmarked     bool
		want         Rival
	}{
		"a record, an older wish":  {"it had the resource", Standing{UID: "b", Since: at(5), Claimed: at(6), Holds: true}, Standing{UID: "a", Since: at(4)}, false, RivalNone},
		"a wish, a younger record": {"the other had the resource", Standing{UID: "a", Since: at(4)}, Standing{UID: "b", Since: at(5), Claimed: at(6), Holds: true}, false, RivalHolds},
		"two records":              {"the earlier one", Standing{UID: "b", Since: at(5), Claimed: at(6), Holds: true}, Standing{UID: "a", Since: at(4), Claimed: at(7), Holds: true}, false, RivalNone},
		"two records, one seen":    {"it was there", Standing{UID: "b", Claimed: at(6), Holds: true}, Standing{UID: "a", Claimed: at(7), Holds: true, Had: true}, false, RivalHolds},
		"two records, no marks":    {"one of them is not true", Standing{UID: "b", Claimed: at(6), Holds: true}, Standing{UID: "a", Claimed: at(7), Holds: true}, true, RivalEqual},
		"two wishes":               {"the older", Standing{UID: "b", Since: at(5)}, Standing{UID: "a", Since: at(4)}, true, RivalHolds},
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			if got := Rivalry(test.ours, test.theirs, !test.unmarked); got != test.want {
				t.Errorf("%s: %d, want %d", test.why, got, test.want)
			}
		})
	}
}
