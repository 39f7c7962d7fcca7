package trace

import (
	"reflect"
	"slices"
	"testing"
)

// TestTexts: every text of every event is cleaned, and counted in a ring.
func TestTexts(t *testing.T) {
	for _, e := range []Event{Start{}, Decision{}, Call{}, Drift{}, Write{}, Transition{}, End{}} {
		dirty := reflect.New(reflect.TypeOf(e)).Elem()
		for i, value := range dirty.Fields() {
			switch value.Kind() {
			case reflect.String:
				value.SetString(i.Name + " of https://a:hunter2@h/")
			case reflect.Slice:
				value.Set(reflect.ValueOf([]string{i.Name + " of https://a:hunter2@h/"}))
			default:
			}
		}
		event, _ := reflect.TypeAssert[Event](dirty)
		texts, fields := textsOf(event)
		var want []string
		for name, value := range dirty.Fields() {
			if value.Kind() == reflect.String || value.Kind() == reflect.Slice {
				want = append(want, name.Name+" of https://a:hunter2@h/")
			}
		}
		got := slices.DeleteFunc(append(texts[:], fields...), func(s string) bool { return s == "" })
		slices.Sort(want)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("texts of %T: %q, want %q", e, got, want)
		}
		var clean []string
		eachText(cleaned(event), func(s string) string { clean = append(clean, s); return s })
		if slices.ContainsFunc(clean, func(s string) bool { return slices.Contains(want, s) }) {
			t.Errorf("%T keeps a password: %q", e, clean)
		}
	}
	fields := []string{"status"}
	write, _ := cleaned(Write{Fields: fields}).(Write)
	if fields[0] = "changed"; write.Fields[0] != "status" {
		t.Error("a record has its caller's slice")
	}
}
