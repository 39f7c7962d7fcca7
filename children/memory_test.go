package children

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
				m.begin(r)
				if early {
					tell()
				}
				var w *written
				ended := types.UID("u")
				if tt.answer != "" {
					w, ended = &written{uid: "u", version: tt.answer, before: tt.before}, ""
				}
				told = m.end(r, w, ended) || told
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
