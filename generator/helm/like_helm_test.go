package helm_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/generator/helm"
)

// TestLikeHelm shows details in which a rendering must be like Helm's.
func TestLikeHelm(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	hook := func(kind, events string) string {
		return "apiVersion: v1\nkind: " + kind + "\nmetadata:\n  name: " + strings.ToLower(kind) +
			"\n  annotations: {helm.sh/hook: '" + events + "', helm.sh/hook-delete-policy: hook-succeeded}\n"
	}
	for name, c := range map[string]struct {
		why      string
		files    map[string]string
		want     string
		wantNone string
	}{
		"text at the end of a file": {
			why:   "Helm joins files with line breaks, so a text at the end keeps its own even if the template cuts it off",
			files: map[string]string{"a.yaml": head + "data:\n  text: |\n    last line\n    {{- print -}}\n"},
			want:  "text: |\n    last line\n",
		},
		"large number": {
			why:   "an integer above 2^53 is no floating point number",
			files: map[string]string{"a.yaml": head + "data: {number: 9007199254740993}\n"},
			want:  "number: 9007199254740993",
		},
		"hook before and after": {
			why: "Helm creates it again for the hooks after the rest, which may need it",
			files: map[string]string{
				"a.yaml": hook("ServiceAccount", "pre-install,post-install"), "b.yaml": hook("Pod", "post-install"), "c.yaml": head,
			},
			want:     "op.test/apply-order: \"-1\"\n    op.test/purge-order: \"1\"",
			wantNone: "op.test/purge-order: \"-1\"",
		},
		"hook before": {
			why:   "nothing after the phase needs it",
			files: map[string]string{"a.yaml": hook("ServiceAccount", "pre-install"), "b.yaml": hook("Pod", "post-install"), "c.yaml": head},
			want:  "op.test/apply-order: \"-1\"\n    op.test/purge-order: \"-1\"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{}
			for file, text := range c.files {
				files["templates/"+file] = text
			}
			got, err := render(t, files, helm.Release{Namespace: "shop", Name: "demo"})
			if err != nil || !strings.Contains(got, c.want) || c.wantNone != "" && strings.Contains(got, c.wantNone) {
				t.Errorf("got %s, %v, want %q in it, and not %q\nwhy it matters: %s", got, err, c.want, c.wantNone, c.why)
			}
		})
	}
}

// TestNull: null removes what the chart and the options have, as it does in a file of values.
func TestNull(t *testing.T) {
	t.Parallel()
	files := map[string]string{"values.yaml": "a: 1\nb: 1\nc: 1\n", "templates/a.yaml": configMapYAML + "data: {values: {{ toJson .Values | quote }}}\n"}
	g, err := helm.NewGenerator(chartOf(files), "chart", helm.Options{Values: map[string]any{"a": 2, "b": 2}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the options are as before
		set, err := g.Render(t.Context(), helm.Release{Namespace: "shop", Name: "demo", Values: map[string]any{"a": nil}})
		if err != nil {
			t.Fatal(err)
		}
		objects, err := set.Annotated("op.test", nil)
		if err != nil {
			t.Fatal(err)
		}
		u, _ := objects[0].(*unstructured.Unstructured)
		if got, _, _ := unstructured.NestedString(u.Object, "data", "values"); got != `{"b":2,"c":1}` {
			t.Errorf("values %s", got)
		}
	}
}
