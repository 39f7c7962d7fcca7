package external

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type color string

func TestCompareHelpers(t *testing.T) {
	monday := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		why  string
		got  Changes
		want string
	}{
		"equal":                {"", Field("a", 1, 1), ""},
		"different":            {"", Field("spec.maxBytes", 2048, 1024), "spec.maxBytes 1024 → 2048"},
		"text":                 {"quoted, so that blanks show", Field("a", "x y", "x"), `a "x" → "x y"`},
		"unset pointer":        {"unset is not managed", Field("a", (*int)(nil), 7), ""},
		"set pointer":          {"", Field("a", new(3), 7), "a 7 → 3"},
		"pointer to zero":      {"zero is a value when it is said", Field("a", new(0), 7), "a 7 → 0"},
		"unset list":           {"unset is not managed", Field("a", []string(nil), []string{"x"}), ""},
		"empty list":           {"empty is a value", Field("a", []string{}, []string{"x"}), `a ["x"] → unset`},
		"empty and absent":     {"", Field("a", []string{}, []string(nil)), ""},
		"empty map and absent": {"", Field("a", map[string]string{}, nil), ""},
		"named type":           {"what the API returns has other types", Field("a", color("red"), "red"), ""},
		"integer widths":       {"", Field("a", int32(5), int64(5)), ""},
		"sign":                 {"-1 is not the largest unsigned", Field("a", int64(-1), ^uint64(0)), "a 18446744073709551615 → -1"},
		"times of two zones":   {"asked by Equal", Field("a", monday, monday.In(time.FixedZone("x", 3600))), ""},
		"order matters":        {"", Field("a", []string{"x", "y"}, []string{"y", "x"}), `a ["y","x"] → ["x","y"]`},
		"set":                  {"order does not matter", Set("a", []string{"x", "y", "x"}, []string{"y", "x"}), ""},
		"set, unset":           {"", Set("a", nil, []string{"y"}), ""},
		"set, empty":           {"", Set("a", []string{}, []string{"y"}), `a ["y"] → unset`},
		"optional zero":        {"zero means unset", Optional("a", "", "x"), ""},
		"optional":             {"", Optional("a", "y", "x"), `a "x" → "y"`},
		"sensitive":            {"never shown", Sensitive(Field("a", "hunter2", "hunter1")), "a (sensitive) → (sensitive)"},
		"long":                 {"bounded", Field("a", string(slices.Repeat([]byte("x"), 200)), "y"), `a "y" → "` + string(slices.Repeat([]byte("x"), 79)) + "…"},
		"sorted by path":       {"the order does not vary", Diff(Field("b", 1, 2), Field("a", 1, 2)), "a 2 → 1, b 2 → 1"},
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.got.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.why, diff)
			}
		})
	}
}

func TestEffects(t *testing.T) {
	all := Diff(Field("a", 1, 2), Recreates(Field("b", 1, 2)), Immutable(Field("c", 1, 2)), Ignore(Field("d", 1, 2)), Immutable(Optional("e", 1, 2)))
	got := map[string]Effect{}
	for _, c := range all {
		got[c.Path] = c.Effect
	}
	want := map[string]Effect{"a": InPlace, "b": Recreate, "c": Unsupported, "d": Ignored, "e": Unsupported}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
	if got := all.With(Unsupported).String(); got != "c 2 → 1, e 2 → 1" {
		t.Errorf("unsupported: %s", got)
	}
	if !all.Has("d") || all.Has("f") {
		t.Error("Has")
	}
}
