package children

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/api"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	const never, always = api.AdoptionPolicyNever, api.AdoptionPolicyAlways
	self, other := types.NamespacedName{Namespace: "n", Name: "self"}, types.NamespacedName{Namespace: "n", Name: "other"}
	by := func(uid types.UID) *metav1.OwnerReference {
		return &metav1.OwnerReference{Kind: "Page", Name: "p", UID: uid}
	}
	tests := map[string]struct {
		why  string
		c    claims
		want ownership
		said string
	}{
		"ours":                      {why: "label and reference", c: claims{label: "me", controller: by("me"), policy: never}, want: ours},
		"ours without reference":    {why: "somebody removed it", c: claims{label: "me", policy: never}, want: ours},
		"labelled, controlled":      {why: "a copy of a child that another adopted", c: claims{label: "me", controller: by("you")}, want: theirs, said: "belongs to Page p"},
		"nobody's":                  {why: "the default", c: claims{}, want: adopted},
		"nobody's, never":           {why: "the author said so", c: claims{policy: never}, want: theirs, said: "was created by somebody else"},
		"controlled":                {why: "somebody else's", c: claims{controller: by("you")}, want: theirs, said: "belongs to Page p"},
		"controlled, always":        {why: "its reference must go first", c: claims{controller: by("you"), policy: always}, want: seized},
		"Helm's":                    {why: "an upgrade of the release would take it back", c: claims{helm: "n/r"}, want: theirs, said: "belongs to Helm release n/r"},
		"Helm's, always":            {why: "the author said so", c: claims{helm: "n/r", policy: always}, want: adopted},
		"of another, by annotation": {why: "somebody else's", c: claims{label: "you", referred: other}, want: theirs, said: "belongs to n/other"},
		"a foreign child":           {why: "its owner would lose it", c: claims{foreign: "n/other, by annotation page.example.org/owner"}, want: theirs, said: "belongs to n/other, by annotation page.example.org/owner"},
		"a foreign child, always":   {why: "the author said so", c: claims{foreign: "n/other", policy: always}, want: adopted},
		"ours, foreign before":      {why: "it was adopted", c: claims{label: "me", controller: by("me"), foreign: "n/other"}, want: ours},
		"of an earlier one":         {why: "the owner was restored from a backup", c: claims{label: "you", referred: self}, want: adopted},
		"ours without label":        {why: "somebody removed it", c: claims{controller: by("me"), policy: never}, want: ours},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.c.owner, tt.c.uid = self, "me"
			if is, said := judge(tt.c); is != tt.want || said != tt.said {
				t.Errorf("%s: got %d %q, want %d %q", tt.why, is, said, tt.want, tt.said)
			}
		})
	}
}

// TestForeign: whose an object is that has no owner reference, by annotations of other controllers.
func TestForeign(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		why         string
		annotations map[string]string
		want        string
	}{
		"nobody's":              {"none says otherwise", map[string]string{"example.org/owner": "a team"}, ""},
		"ours":                  {"judge looks at it", map[string]string{"us/owner": "n/a n/config"}, ""},
		"a child":               {"of another controller", map[string]string{"them/owner": "m/a n/config"}, "m/a, by annotation them/owner"},
		"a copy of a child":     {"it has another name", map[string]string{"them/owner": "m/a n/another"}, ""},
		"of a component":        {"of an operator", map[string]string{"them/owner-id": "u/n/c@uid /ConfigMap/n/config"}, "u/n/c, by annotation them/owner-id"},
		"a copy of a component": {"it has another name", map[string]string{"them/owner-id": "u/n/c@uid /ConfigMap/n/another"}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
			obj.SetNamespace("n")
			obj.SetName("config")
			obj.SetAnnotations(tt.annotations)
			if got := (names{"us"}).claims(obj, owning{}, "").foreign; got != tt.want {
				t.Errorf("%s: %q, want %q", tt.why, got, tt.want)
			}
		})
	}
}
