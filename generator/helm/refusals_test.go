package helm_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/trimtab-dev/trimtab/generator/helm"
)

const configMapYAML = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

// chartYAML is a Chart.yaml with more lines.
func chartYAML(more string) string { return "apiVersion: v2\nname: demo\nversion: 1.0.0\n" + more }

// one is a chart of one template.
func one(text string) map[string]string { return map[string]string{"templates/a.yaml": text} }

// A refusal is a chart that cannot be rendered.
type refusal struct {
	why   string
	files map[string]string // "-" stands for a file that is not there
	// new is the error of NewGenerator; render is that of Render if NewGenerator accepts the chart.
	new, render string
}

// refusedAtStart are charts that cannot be rendered with any values.
func refusedAtStart() map[string]refusal {
	return map[string]refusal{
		"no Chart.yaml": {
			why: "a wrong folder", files: map[string]string{"Chart.yaml": "-", "templates/a.yaml": configMapYAML},
			new: `chart chart: Chart.yaml file is missing`,
		},
		"Chart.yaml is no YAML": {
			why: "a typing error", files: map[string]string{"Chart.yaml": "name: [\n"},
			new: `chart chart: Chart.yaml: yaml: line 1: did not find expected node content`,
		},
		"Chart.yaml without name": {
			why: "the name is needed", files: map[string]string{"Chart.yaml": "apiVersion: v2\nversion: 1.0.0\n"},
			new: `chart chart: validation: chart.metadata.name is required`,
		},
		"apiVersion": {
			why: "charts of later versions have other rules", files: map[string]string{"Chart.yaml": "apiVersion: v3\nname: demo\nversion: 1.0.0\n"},
			new: `chart chart: its apiVersion is "v3", which must be v1 or v2`,
		},
		"library": {
			why: "it renders nothing, which is hardly what somebody wants", files: map[string]string{"Chart.yaml": chartYAML("type: library\n")},
			new: `chart chart: it is a library chart, which renders nothing; use it as a sub-chart`,
		},
		"values.yaml is no YAML": {
			why: "a typing error", files: map[string]string{"values.yaml": "a: 1\nb: [\n"},
			new: `chart chart: values.yaml: yaml: line 2: did not find expected node content`,
		},
		"values.yaml is a list": {
			why: "values are a map", files: map[string]string{"values.yaml": "- a\n"},
			new: `chart chart: values.yaml: json: cannot unmarshal array into Go value of type map[string]interface {}`,
		},
		"schema is no JSON": {
			why: "it is not the fault of the values", files: map[string]string{"values.schema.json": `{"type":`},
			new: `chart chart: demo/values.schema.json: it is no JSON: unexpected end of JSON input`,
		},
		"syntax": {
			why: "no values help", files: one(configMapYAML + "data: {{ if }}\n"),
			new: `chart chart: demo/templates/a.yaml:4: missing value for if`,
		},
		"syntax in a sub-chart": {
			why:   "the file is named from the parent on",
			files: map[string]string{"charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "charts/sub/templates/a.yaml": "\n{{ end }}"},
			new:   `chart chart: demo/charts/sub/templates/a.yaml:2: unexpected {{end}}`,
		},
		"unknown function": {
			why: "no values help", files: one(configMapYAML + "data: {{ nope 1 }}\n"),
			new: `chart chart: demo/templates/a.yaml:4: function "nope" not defined`,
		},
		"env": {
			why: "a chart must not read the environment of the operator, which has secrets", files: one(configMapYAML + "data: {a: {{ env \"HOME\" }}}\n"),
			new: `chart chart: demo/templates/a.yaml:4: function "env" not defined`,
		},
		"expandenv": {
			why: "like env", files: one(configMapYAML + "data: {a: {{ expandenv \"$HOME\" }}}\n"),
			new: `chart chart: demo/templates/a.yaml:4: function "expandenv" not defined`,
		},
		"missing sub-chart": {
			why: "Helm renders the chart without it", files: map[string]string{"Chart.yaml": chartYAML("dependencies: [{name: sub, version: 1.0.0}]\n")},
			new: `chart chart: demo/Chart.yaml names the sub-chart sub, which is not in charts/; run helm dependency build`,
		},
		"a chart that requires itself": {
			why: "a folder cannot contain itself, so it is a sub-chart that is not there", files: map[string]string{"Chart.yaml": chartYAML("dependencies: [{name: demo, version: 1.0.0}]\n")},
			new: `chart chart: demo/Chart.yaml names the sub-chart demo, which is not in charts/; run helm dependency build`,
		},
	}
}

// refusedByValues are charts that other values or another cluster may render.
func refusedByValues() map[string]refusal {
	return map[string]refusal{
		"required": {
			why: "the author's text must be there", files: one(configMapYAML + "data: {a: {{ required \"set a\" .Values.a }}}\n"),
			render: `chart demo: demo/templates/a.yaml:4:13: set a`,
		},
		"fail": {
			why: "the author's text must be there", files: one(configMapYAML + "\n{{ fail \"no way\" }}\n"),
			render: `chart demo: demo/templates/a.yaml:5:3: no way`,
		},
		"value of nothing": {
			why: "the most frequent error in charts", files: one(configMapYAML + "data: {{ .Values.a.b.c }}\n"),
			render: `chart demo: demo/templates/a.yaml:4:16: <.Values.a.b.c>: nil pointer evaluating interface {}.b`,
		},
		"schema with a pattern": {
			why:    "a message must not show a password",
			files:  map[string]string{"values.yaml": "a: \"it's 1\"\nb: x\n", "values.schema.json": `{"properties":{"a":{"pattern":"^[a-z]+$"},"b":{"format":"email","type":"string"}}}`},
			render: `chart demo: values don't meet the specifications of the schema(s) in the following chart(s): demo: - at '/a': the value does not match pattern '^[a-z]+$'`,
		},
		"schema": {
			why:    "all that is wrong is said",
			files:  map[string]string{"values.yaml": "a: 1\n", "values.schema.json": `{"properties":{"a":{"type":"string"}},"required":["b"]}`},
			render: `chart demo: values don't meet the specifications of the schema(s) in the following chart(s): demo: - at '': missing property 'b' - at '/a': got number, want string`,
		},
		"kubeVersion": {
			why: "another cluster may do", files: map[string]string{"Chart.yaml": chartYAML("kubeVersion: '>= 99.0.0'\n"), "templates/a.yaml": configMapYAML},
			render: `chart demo: it requires Kubernetes >= 99.0.0, and the cluster has v1.37.1`,
		},
		"no object": {
			why: "the line is that of the rendered file", files: one("\n\na: b\n"),
			render: `chart demo: demo/templates/a.yaml:3: it is no object: it lacks apiVersion or kind`,
		},
		"text": {
			why: "Helm speaks of its own types", files: one("hello\n"),
			render: `chart demo: demo/templates/a.yaml:1: it is no object: it lacks apiVersion or kind`,
		},
		"metadata is a text": {
			why: "Helm speaks of its own types", files: one("apiVersion: v1\nkind: ConfigMap\nmetadata: a\n"),
			render: `chart demo: demo/templates/a.yaml:1: it is no object: its metadata are no map`,
		},
		"no name": {
			why: "the line is that of the document", files: one(configMapYAML + "---\napiVersion: v1\nkind: Secret\nmetadata: {namespace: x}\n"),
			render: `chart demo: demo/templates/a.yaml:5: the Secret has no metadata.name`,
		},
		"twice": {
			why: "both places are named", files: map[string]string{"templates/a.yaml": configMapYAML, "templates/b.yaml": "# b\n---\n" + configMapYAML},
			render: `chart demo: demo/templates/b.yaml:3: the ConfigMap a is there twice; the other one is in demo/templates/a.yaml:1`,
		},
		"no YAML": {
			why: "the line is that of the file, not that of the document", files: one(configMapYAML + "---\n" + configMapYAML + "data:\n  a: [b\n  c: d\n"),
			render: `chart demo: demo/templates/a.yaml:9: it is no YAML: did not find expected ',' or ']'`,
		},
		"no YAML in crds": {
			why: "it is no template", files: map[string]string{"crds/a.yaml": "a: [\n"},
			render: `chart demo: demo/crds/a.yaml:2: it is no YAML: did not find expected node content`,
		},
		"annotation that is a number": {
			why:    "the API server refuses it, and what reads annotations sees none at all, so hooks would lose theirs",
			files:  one("apiVersion: batch/v1\nkind: Job\nmetadata: {name: a, annotations: {helm.sh/hook: 'pre-install,pre-upgrade', helm.sh/hook-weight: 1}}\n"),
			render: `chart demo: demo/templates/a.yaml:1: the annotations of the Job a have helm.sh/hook-weight: 1, which is no text; quote it`,
		},
	}
}

// TestRefusals shows what is said about charts that cannot be rendered.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, table := range []map[string]refusal{refusedAtStart(), refusedByValues()} {
		for name, c := range table {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				fsys := chartOf(c.files)
				for file, text := range c.files {
					if text == "-" {
						delete(fsys, "chart/"+file)
					}
				}
				g, err := helm.NewGenerator(fsys, "chart", helm.Options{})
				if got := text(err); got != c.new {
					t.Fatalf("NewGenerator: got %q, want %q\nwhy it matters: %s", got, c.new, c.why)
				}
				if err != nil {
					return
				}
				r := helm.Release{Namespace: "shop", Name: "demo"}
				r.Capabilities.Version = "v1.37.1"
				_, err = g.Render(t.Context(), r)
				if got := text(err); got != c.render {
					t.Errorf("Render: got %q, want %q\nwhy it matters: %s", got, c.render, c.why)
				}
			})
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestEndlessTemplate renders a template that includes itself. The error of Helm has hundreds of thousands of bytes.
func TestEndlessTemplate(t *testing.T) {
	t.Parallel()
	_, err := render(t, map[string]string{
		"templates/_h.tpl": `{{ define "x" }}{{ include "x" . }}{{ end }}`, "templates/a.yaml": `{{ include "x" . }}`,
	}, helm.Release{Namespace: "shop", Name: "demo"})
	got := text(err)
	if !strings.HasPrefix(got, "chart demo: demo/templates/a.yaml:1:3: ") || !strings.Contains(got, "nested reference name: x") || len(got) > 3000 {
		t.Errorf("got %d bytes: %s", len(got), got)
	}
}

// TestSizes renders as much as a cluster can hold of one component, and more.
func TestSizes(t *testing.T) {
	t.Parallel()
	large := 1 << 20 // decoding more takes minutes with -race
	if os.Getenv("TRIMTAB_DEEP") != "" {
		large = 10 << 20
	}
	for name, c := range map[string]struct {
		why, template string
		objects       int
		bytes         int
	}{
		"1,000 objects": {
			why:      "charts of many small objects are usual",
			template: "{{ range until 1000 }}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a{{ . }}}\n{{ end }}", objects: 1000,
		},
		"1 or 10 MiB": {
			why:      "how much an object may have is for the API server to say",
			template: configMapYAML + fmt.Sprintf("data: {a: {{ repeat %d \"x\" }}}\n", large), objects: 1, bytes: large,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := render(t, one(c.template), helm.Release{Namespace: "shop", Name: "demo"})
			if n := strings.Count(got, "kind: ConfigMap"); err != nil || n != c.objects || len(got) < c.bytes {
				t.Errorf("got %d objects of %d bytes, %v, want %d of %d\nwhy it matters: %s", n, len(got), err, c.objects, c.bytes, c.why)
			}
		})
	}
}

// TestNullAnnotations renders an object with annotations that are null, which must not hide the others.
func TestNullAnnotations(t *testing.T) {
	t.Parallel()
	got, err := render(t, one("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: null, annotations: {a: null, helm.sh/resource-policy: keep}}\n"),
		helm.Release{Namespace: "shop", Name: "demo"})
	if err != nil || !strings.Contains(got, "helm.sh/resource-policy: keep") || !strings.Contains(got, "op.test/delete-policy: orphan") || strings.Contains(got, "null") {
		t.Errorf("got %s, %v", got, err)
	}
}
