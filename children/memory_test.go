package children

import (
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/apply"
)

// TestEchoes: an event that shows our own write and nothing else is no news, whether it comes before the answer to the
// write or after it. Anything else is news.
func TestEchoes(t *testing.T) {
	t.Parallel()
	object := func(version string) client.Object {
		if version == "" {
			return nil
		}
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: version}}
	}
	tests := map[string]struct {
		why    string
		before string // what the write was based on
		answer string // empty if the write ended the object
		events [][2]string
		news   bool
	}{
		"created":          {why: "it is as we wrote it", answer: "5", events: [][2]string{{"", "5"}}},
		"changed":          {why: "nothing came between", before: "4", answer: "5", events: [][2]string{{"4", "5"}}},
		"overtaken":        {why: "somebody wrote before us", before: "3", answer: "5", events: [][2]string{{"3", "4"}, {"4", "5"}}, news: true},
		"overtaken, gap":   {why: "the watch shows both writes as one", before: "3", answer: "5", events: [][2]string{{"4", "5"}}, news: true},
		"changed again":    {why: "somebody wrote after us", before: "4", answer: "5", events: [][2]string{{"4", "5"}, {"5", "6"}}, news: true},
		"deleted":          {why: "somebody deleted it", before: "4", answer: "5", events: [][2]string{{"4", ""}}, news: true},
		"deleted by us":    {why: "we know", before: "4", events: [][2]string{{"4", ""}}},
		"changed, deleted": {why: "somebody wrote to what we deleted", before: "4", events: [][2]string{{"4", "5"}, {"5", ""}}, news: true},
	}
	for name, tt := range tests {
		for when, early := range map[string]bool{"before the answer": true, "after it": false} {
			t.Run(name+" "+when, func(t *testing.T) {
				m, r := newMemory(), apply.Ref{}
				told := false
				tell := func() {
					for _, e := range tt.events {
						told = m.news(r, object(e[0]), object(e[1])) || told
					}
				}
				begun := m.begin(r, "o")
				if early {
					tell()
				}
				var w *written
				ended := types.UID("u")
				if tt.answer != "" {
					w, ended = &written{uid: "u", version: tt.answer, before: tt.before}, ""
				}
				told = m.end(r, begun, w, ended) || told
				if !early {
					tell()
				}
				if told != tt.news {
					t.Errorf("%s: news is %t, want %t", tt.why, told, tt.news)
				}
			})
		}
	}
}

// ofOwner is a version of an object with the UID of its owner.
func ofOwner(owner, version string) client.Object {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: version, Labels: map[string]string{"owner": owner}}}
}

// TestTwoWriters: an event that comes while two write to an object is not lost, whoever is done first.
func TestTwoWriters(t *testing.T) {
	t.Parallel()
	r := apply.Ref{}
	t.Run("the second write hides nothing from the first", func(t *testing.T) {
		t.Parallel()
		m := newMemory()
		m.label = "owner"
		first := m.begin(r, "a")
		if m.news(r, ofOwner("a", "4"), ofOwner("a", "5")) {
			t.Error("the answer to the first may show that it is its own")
		}
		second := m.begin(r, "a")
		m.end(r, second, nil, "")
		if !m.end(r, first, &written{uid: "u", version: "6", before: "4"}, "") {
			t.Error("somebody wrote version 5, and nobody is woken")
		}
		if len(m.writing) > 0 {
			t.Errorf("%d objects are still being written", len(m.writing))
		}
	})
	t.Run("who writes to an object of another owner does not keep its events from that", func(t *testing.T) {
		t.Parallel()
		m := newMemory()
		m.label = "owner"
		begun := m.begin(r, "b")
		if !m.news(r, ofOwner("a", "4"), ofOwner("a", "5")) {
			t.Error("the answer to b's write wakes b alone")
		}
		m.end(r, begun, nil, "")
	})
}

// TestClaims: every owner that waits until an object is gone is woken, and nothing is remembered of owners that no longer
// wait.
func TestClaims(t *testing.T) {
	t.Parallel()
	r, other := apply.Ref{}, apply.Ref{NamespacedName: types.NamespacedName{Name: "other"}}
	a, b := owning{types.NamespacedName{Name: "a"}, "a"}, owning{types.NamespacedName{Name: "b"}, "b"}
	tests := map[string]struct {
		why string
		end func(m *memory) (news bool)
	}{
		"deleted by others": {"as any news", func(m *memory) bool { return m.news(r, ofOwner("c", "4"), nil) }},
		"deleted by us": {"who waits did not delete it", func(m *memory) bool {
			m.end(r, m.begin(r, "c"), nil, "u")
			return m.news(r, ofOwner("c", "4"), nil)
		}},
		"deleted by us, before the answer": {"the answer wakes nobody but who deleted it", func(m *memory) bool {
			begun := m.begin(r, "c")
			news := m.news(r, ofOwner("c", "4"), nil)
			m.end(r, begun, nil, "u")
			return news
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMemory()
			m.label = "owner"
			m.claim(r, a)
			m.claim(r, b)
			m.claim(other, a)
			if !tt.end(m) {
				t.Errorf("%s: no news", tt.why)
			}
			if got := m.claimed(r); len(got) != 2 {
				t.Errorf("%s: %v are woken, want a and b", tt.why, got)
			}
			m.keep(a, map[apply.Ref]bool{other: true})
			if got := m.claimed(r); !slices.Equal(got, []types.NamespacedName{b.NamespacedName}) {
				t.Errorf("%v wait, want b", got)
			}
			m.keep(a, nil)
			m.keep(b, nil)
			if len(m.claims)+len(m.holding) > 0 {
				t.Errorf("kept %v, %v", m.claims, m.holding)
			}
		})
	}
}

// TestRepairs: of the repairs of an object, those are kept that count.
func TestRepairs(t *testing.T) {
	t.Parallel()
	m, r, now := newMemory(), apply.Ref{}, time.Now()
	for range 100 {
		now = now.Add(repairsWithin)
		m.end(r, m.begin(r, "o"), &written{uid: "u", at: now, repairs: []time.Time{now}}, "")
	}
	if n := len(m.written[r].repairs); n > mostRepairs {
		t.Errorf("%d repairs are kept", n)
	}
}

// TestGone: when the answer to a delete, or to the removal of a finalizer, means the end of an object.
func TestGone(t *testing.T) {
	t.Parallel()
	deleted := func(more map[string]any) *unstructured.Unstructured {
		m := map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z"}
		maps.Copy(m, more)
		return &unstructured.Unstructured{Object: map[string]any{"metadata": m}}
	}
	namespace := func(finalizers ...any) *unstructured.Unstructured {
		u := deleted(nil)
		u.Object["spec"] = map[string]any{"finalizers": finalizers}
		return u
	}
	tests := map[string]struct {
		why  string
		live *unstructured.Unstructured
		want bool
	}{
		"nothing":             {"there is none", nil, true},
		"last finalizer":      {"it is gone as soon as it has none", deleted(nil), true},
		"no grace":            {"the same", deleted(map[string]any{"deletionGracePeriodSeconds": int64(0)}), true},
		"another's finalizer": {"it waits for that", deleted(map[string]any{"finalizers": []any{"example.org/wait"}}), false},
		"not deleted":         {"it stays", &unstructured.Unstructured{Object: map[string]any{}}, false},
		"Pod":                 {"its containers end first", deleted(map[string]any{"deletionGracePeriodSeconds": int64(30)}), false},
		"Namespace":           {"its content goes first", namespace("kubernetes"), false},
		"empty Namespace":     {"its content is gone", namespace(), true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := gone(tt.live); got != tt.want {
				t.Errorf("%s: %t, want %t", tt.why, got, tt.want)
			}
		})
	}
}
