package packaging

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// texts are files of charts. Those that end in .tmpl are templates with other delimiters than the charts have.
//
//go:embed chart
var texts embed.FS

// chart adds the Helm chart.
func (m Model) chart(files map[string][]byte) error {
	c := &chart{Model: m, folder: "chart/" + m.Installation + "/", files: files}
	for _, add := range []func() error{c.texts, c.crds, c.access, c.manager, c.extras, c.uninstall} {
		if err := add(); err != nil {
			return fmt.Errorf("make the chart: %w", err)
		}
	}
	return nil
}

// chart is a chart that is being made.
type chart struct {
	Model

	folder string
	files  map[string][]byte
	values []string // expressions, by the numbers of their tokens
}

// token returns what stands for an expression until an object is printed. Helm replaces the expression by a value, as JSON.
func (c *chart) token(expression string) string {
	c.values = append(c.values, "{{ "+expression+" }}")
	return fmt.Sprintf("trimtab-value-%d-", len(c.values)-1)
}

// value returns what stands for a value of the user.
func (c *chart) value(path string) string { return c.token("toJson $.Values." + path) }

// keepCRD is an annotation that stands for lines which depend on a value.
const keepCRD = "trimtab-keep"

// text returns an object as the text of a template.
func (c *chart) text(content map[string]any) (string, error) {
	out, err := yaml.Marshal(content)
	if err != nil {
		return "", err
	}
	text := strings.ReplaceAll(string(out), "{{", "{{ `{{` }}")
	text = strings.ReplaceAll(text, ": "+ReleaseNamespace+"\n", ": {{ $.Release.Namespace | quote }}\n") // it may look like a number
	text = strings.ReplaceAll(text, ReleaseNamespace, "{{ $.Release.Namespace }}")
	for i, expression := range slices.Backward(c.values) {
		text = strings.ReplaceAll(text, fmt.Sprintf("trimtab-value-%d-", i), expression)
	}
	var lines []string
	for line := range strings.Lines(text) {
		before := line[:len(line)-len(strings.TrimLeft(line, " "))]
		switch strings.TrimSpace(line) {
		case keepCRD + `: ""`:
			line = "{{- if $.Values.crds.keep }}\n" + before + "helm.sh/resource-policy: keep\n{{- end }}\n"
		case "- " + EachNamespace:
			line = "{{- range $.Values.namespaces }}\n" + before + "- {{ . | quote }}\n{{- end }}\n"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, ""), nil
}

// object returns an object as the text of a template. One in [EachNamespace] is repeated.
func (c *chart) object(o client.Object) (string, error) {
	content, err := fields(o)
	if err != nil {
		return "", err
	}
	text, err := c.text(content)
	if o.GetNamespace() == EachNamespace {
		text = "{{- range $.Values.namespaces }}\n---\n" + strings.ReplaceAll(strings.ReplaceAll(text, ": "+EachNamespace+"\n", ": {{ . | quote }}\n"), EachNamespace, "{{ . }}") + "{{- end }}\n"
	}
	return text, err
}

// write adds a template in which each document is created if a condition holds; an empty one always does.
func (c *chart) write(name string, documents ...document) {
	var out strings.Builder
	for i, d := range documents {
		if i > 0 {
			out.WriteString("---\n")
		}
		if d.when == "" {
			out.WriteString(d.text)
			continue
		}
		out.WriteString("{{- if " + d.when + " }}\n" + d.text + "{{- end }}\n")
	}
	c.files[c.folder+"templates/"+name] = []byte(out.String())
}

// document is a part of a template.
type document struct{ when, text string }

// crds adds the CRDs.
func (c *chart) crds() error {
	var documents []document
	for _, crd := range c.Chart.CRDs {
		content, err := fields(crd)
		if err != nil {
			return err
		}
		if err := unstructured.SetNestedField(content, "", "metadata", "annotations", keepCRD); err != nil {
			return err
		}
		text, err := c.text(content)
		if err != nil {
			return err
		}
		documents = append(documents, document{"$.Values.crds.enabled", text})
	}
	if len(documents) > 0 {
		c.write("crds.yaml", documents...)
	}
	return nil
}

// access adds what is the same for each installation, or depends on the namespaces alone.
func (c *chart) access() error {
	of := func(o Objects) []client.Object { return slices.Concat(o.Access, o.Policies, o.Services, o.Webhooks) }
	var restricted []client.Object
	if c.Restricted != nil {
		restricted = of(*c.Restricted)
	}
	documents, err := c.either(of(c.Chart), restricted)
	if err == nil {
		c.write("access.yaml", documents...)
	}
	return err
}

// either returns documents of the objects for all namespaces, and of those for some. What is in both, and equal, is there once.
func (c *chart) either(all, some []client.Object) ([]document, error) {
	texts := map[string]bool{}
	var documents, restricted []document
	for _, o := range all {
		text, err := c.object(o)
		if err != nil {
			return nil, err
		}
		texts[text] = true
		documents = append(documents, document{text: text})
	}
	if some == nil {
		return documents, nil
	}
	same := map[string]bool{}
	for _, o := range some {
		text, err := c.object(o)
		if err != nil {
			return nil, err
		}
		if same[text] = texts[text]; !texts[text] {
			restricted = append(restricted, document{"$.Values.namespaces", text})
		}
	}
	for i, d := range documents {
		if !same[d.text] {
			documents[i].when = "not $.Values.namespaces"
		}
	}
	return append(documents, restricted...), nil
}

// manager adds the Deployment.
func (c *chart) manager() error {
	content, err := fields(c.Chart.Deployment)
	if err != nil {
		return err
	}
	pod, _, err := unstructured.NestedMap(content, "spec", "template", "spec")
	if err != nil {
		return err
	}
	containers, _ := pod["containers"].([]any)
	container, _ := containers[0].(map[string]any)
	container["args"] = c.arguments(c.Chart.Deployment.Spec.Template.Spec.Containers[0].Args)
	container["resources"] = c.value("resources")
	c.place(pod, container)
	if err := unstructured.SetNestedMap(content, pod, "spec", "template", "spec"); err != nil {
		return err
	}
	if err := unstructured.SetNestedField(content, c.value("replicas"), "spec", "replicas"); err != nil {
		return err
	}
	text, err := c.text(content)
	c.write("manager.yaml", document{text: text})
	return err
}

// place sets what users choose about each pod.
func (c *chart) place(pod, container map[string]any) {
	container["image"] = c.token(`printf "%s%s%s" $.Values.image.repository (hasPrefix "sha256:" $.Values.image.tag | ternary "@" ":") $.Values.image.tag | quote`)
	container["imagePullPolicy"] = c.value("image.pullPolicy")
	pod["imagePullSecrets"] = c.value("imagePullSecrets")
	pod["nodeSelector"] = c.value("nodeSelector")
	pod["tolerations"] = c.value("tolerations")
	pod["affinity"] = c.value("affinity")
}

// arguments returns what stands for the arguments of the operator: some that are fixed, and those that users choose.
func (c *chart) arguments(fixed []string) string {
	list := []string{"list"}
	for _, arg := range fixed {
		list = append(list, strconv.Quote(arg))
	}
	chosen := "(concat (" + strings.Join(list, " ") + ") $.Values.args)"
	if c.Restricted != nil {
		chosen = "(concat " + chosen + ` (empty $.Values.namespaces | ternary (list) (list (printf "--watch-namespaces=%s" (join "," $.Values.namespaces)))))`
	}
	return c.token("toJson " + chosen)
}

// extras adds what can be left out.
func (c *chart) extras() error {
	chart := c.Chart
	of := []struct {
		name, when string
		object     client.Object
	}{
		{"poddisruptionbudget.yaml", "$.Values.podDisruptionBudget.enabled", c.disruption(chart)},
		{"networkpolicy.yaml", "$.Values.networkPolicy.enabled", c.network(chart)},
		{"prometheusrule.yaml", "$.Values.metrics.prometheusRule.enabled", c.prometheus(chart, "PrometheusRule", map[string]any{"groups": c.AlertGroups})},
		{"dashboard.yaml", "$.Values.metrics.dashboard.enabled", c.dashboard(chart)},
	}
	if s := c.metricsService(chart); s != nil {
		of = append(of, []struct {
			name, when string
			object     client.Object
		}{
			{"metrics.yaml", "or $.Values.metrics.service.enabled $.Values.metrics.serviceMonitor.enabled", s},
			{"servicemonitor.yaml", "$.Values.metrics.serviceMonitor.enabled", c.monitor(chart)},
		}...)
	}
	for _, e := range of {
		text, err := c.object(e.object)
		if err != nil {
			return err
		}
		c.write(e.name, document{e.when, text})
	}
	return nil
}

// texts adds what is mostly text: the description of the chart, its values and their schema, and the notes.
func (c *chart) texts() error {
	repository, tag := c.Image, ""
	if name, digest, is := strings.Cut(c.Image, "@"); is {
		repository, tag = name, digest
	} else if i := strings.LastIndex(c.Image, ":"); i > strings.LastIndex(c.Image, "/") {
		repository, tag = c.Image[:i], c.Image[i+1:]
	}
	resources, err := json.Marshal(c.Chart.Deployment.Spec.Template.Spec.Containers[0].Resources)
	if err != nil {
		return err
	}
	data := map[string]any{
		"Name": c.Name, "Installation": c.Installation, "Version": c.Version, "Repository": strconv.Quote(repository), "Tag": strconv.Quote(tag),
		"Resources": string(resources), "Restricted": c.Restricted != nil, "Metrics": c.metricsService(c.Chart) != nil, "Kinds": c.Kinds,
	}
	for to, from := range map[string]string{
		"Chart.yaml": "Chart.yaml.tmpl", "values.yaml": "values.yaml.tmpl", "values.schema.json": "values.schema.json.tmpl", "templates/NOTES.txt": "NOTES.txt.tmpl",
	} {
		t, err := template.New(from).Delims("[[", "]]").ParseFS(texts, "chart/"+from)
		if err != nil {
			return err
		}
		var out bytes.Buffer
		if err := t.Execute(&out, data); err != nil {
			return err
		}
		c.files[c.folder+to] = out.Bytes()
	}
	return nil
}
