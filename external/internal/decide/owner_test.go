package decide

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/external/internal/record"
)

func recordOfOurs() record.Record {
	return record.Record{ID: "orders", Incarnation: 1, UID: "u1", Create: record.Marker{At: time.Date(2026, 1, 5, 10, 11, 12, 131415000, time.UTC), By: "pod"}}
}

func TestOwner(t *testing.T) {
	mark := func(uid, name string) map[string]string {
		return map[string]string{record.MarkUID: uid, record.MarkKind: "Stream.example.org", record.MarkNamespace: "shop", record.MarkName: name, record.MarkCluster: "c1"}
	}
	in := func(cluster string, m map[string]string) map[string]string {
		if m[record.MarkCluster] = cluster; cluster == "" {
			delete(m, record.MarkCluster)
		}
		return m
	}
	adopted := func(from string) record.Record { r := recordOfOurs(); r.Adopted = from; return r }
	left := func(uid string) record.Record { r := recordOfOurs(); r.UID = uid; return r }
	type asks = Claimant
	tests := map[string]struct {
		why   string
		asks  asks
		found map[string]string
		want  Owner
	}{
		"our mark":                     {"", asks{Record: recordOfOurs()}, mark("u1", "orders"), OwnerUs},
		"our mark, no record":          {"", asks{}, mark("u1", "orders"), OwnerUs},
		"our mark, of before":          {"marks did not always name a cluster", asks{Record: recordOfOurs()}, in("", mark("u1", "orders")), OwnerUs},
		"no mark":                      {"", asks{Record: recordOfOurs()}, nil, OwnerNobody},
		"another object":               {"", asks{Record: recordOfOurs()}, mark("u2", "other"), OwnerOther},
		"an earlier object":            {"there is one object of a name at a time", asks{Record: recordOfOurs()}, mark("u2", "orders"), OwnerNamesake},
		"another cluster":              {"its object may live", asks{Record: recordOfOurs()}, in("c2", mark("u2", "orders")), OwnerForeign},
		"no cluster":                   {"nobody knows which", asks{Record: recordOfOurs()}, in("", mark("u2", "orders")), OwnerForeign},
		"another cluster, vouched":     {"a record proves nothing about others", asks{Inherited: left("u2")}, in("c2", mark("u2", "orders")), OwnerForeign},
		"another cluster, adopted":     {"forged", asks{Record: adopted("u2"), Adoption: AdoptAlways}, in("c2", mark("u2", "orders")), OwnerForeign},
		"another cluster, stated":      {"a cluster that died", asks{From: "u2"}, in("c2", mark("u2", "orders")), OwnerStated},
		"another one than stated":      {"", asks{From: "u3"}, in("c2", mark("u2", "orders")), OwnerForeign},
		"another object, stated":       {"one that was deleted by force", asks{From: "u2"}, mark("u2", "other"), OwnerStated},
		"stated and taken over":        {"", asks{Record: adopted("u2"), From: "u2"}, in("c2", mark("u2", "orders")), OwnerRecorded},
		"restored":                     {"the record came with the backup", asks{Inherited: left("u0"), Adoption: AdoptIfMarked}, mark("u0", "orders"), OwnerRestored},
		"copied":                       {"the record came from another object", asks{Inherited: left("u0")}, mark("u0", "other"), OwnerOther},
		"adopted unmarked":             {"", asks{Record: adopted(record.AdoptedUnmarked), Adoption: AdoptIfIdentical}, nil, OwnerRecorded},
		"adopted, not allowed":         {"a record gives what policy would give", asks{Record: adopted(record.AdoptedUnmarked), Adoption: AdoptIfMarked}, nil, OwnerNobody},
		"adopted an earlier one's":     {"", asks{Record: adopted("u2"), Adoption: AdoptIfMarked}, mark("u2", "orders"), OwnerRecorded},
		"adopted, another object's":    {"forged", asks{Record: adopted("u2"), Adoption: AdoptAlways}, mark("u2", "other"), OwnerOther},
		"another than was adopted":     {"", asks{Record: adopted("u2"), Adoption: AdoptIfMarked}, mark("u3", "orders"), OwnerNamesake},
		"adopted, now another's":       {"", asks{Record: adopted(record.AdoptedUnmarked), Adoption: AdoptAlways}, mark("u2", "other"), OwnerOther},
		"no marks, created":            {"", asks{Record: recordOfOurs(), Unmarked: true}, nil, OwnerRecorded},
		"no marks, never created":      {"it was there before", asks{Record: recordOfOurs(), Unmarked: true, Untried: true}, nil, OwnerNobody},
		"no marks, no record":          {"it was there before", asks{Unmarked: true, Untried: true}, nil, OwnerNobody},
		"no marks, record inherits":    {"a copy vouches for nothing", asks{Inherited: left("u0"), Unmarked: true}, nil, OwnerNobody},
		"no marks, adopted":            {"", asks{Record: adopted(record.AdoptedUnmarked), Unmarked: true, Adoption: AdoptAlways}, nil, OwnerRecorded},
		"no marks, adopted by forgery": {"", asks{Record: adopted(record.AdoptedUnmarked), Unmarked: true, Adoption: AdoptIfMarked}, nil, OwnerNobody},
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			c := test.asks
			c.Mark = record.Mark{UID: "u1", Kind: "Stream.example.org", Namespace: "shop", Name: "orders", Cluster: "c1"}
			if got := c.OwnerOf(test.found); got != test.want {
				t.Errorf("%s: owner %d, want %d", test.why, got, test.want)
			}
		})
	}
}
