package charts_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/trimtab-dev/trimtab/generator/helm"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
)

// large writes a chart of 100 objects, and returns values of 1 MiB for it.
func large(b *testing.B) (folder string, values map[string]any) {
	b.Helper()
	folder = b.TempDir()
	files := map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: large\nversion: 1.0.0\n",
		"templates/_helpers.tpl": `{{- define "labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}`,
	}
	for i := range 50 {
		files[fmt.Sprintf("templates/%d.yaml", i)] = strings.ReplaceAll(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}-#
  labels: {{- include "labels" . | nindent 4 }}
spec:
  replicas: {{ .Values.replicas }}
  selector:
    matchLabels: {{- include "labels" . | nindent 6 }}
  template:
    metadata:
      labels: {{- include "labels" . | nindent 8 }}
    spec:
      containers:
        - name: main
          image: "{{ .Values.image }}"
          resources: {{- toYaml .Values.resources | nindent 12 }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-#
data:
  {{- range $key, $value := (index .Values.data #) }}
  {{ $key }}: {{ $value | quote }}
  {{- end }}
`, "#", strconv.Itoa(i))
	}
	for name, text := range files {
		name = filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	var data []any
	for range 50 {
		entries := map[string]any{}
		for key := range 20 {
			entries[fmt.Sprintf("key-%d", key)] = strings.Repeat("value ", 170)
		}
		data = append(data, entries)
	}
	return folder, map[string]any{
		"replicas": 3, "image": "a:1", "data": data,
		"resources": map[string]any{"limits": map[string]any{"cpu": "1", "memory": "1Gi"}, "requests": map[string]any{"cpu": "100m", "memory": "128Mi"}},
	}
}

// BenchmarkRender renders a chart of 100 objects with 1 MiB of values: as helm template does, and for a component, for
// which the objects are decoded as well.
func BenchmarkRender(b *testing.B) {
	folder, values := large(b)
	b.Run("helm", func(b *testing.B) {
		for b.Loop() {
			c, err := loader.LoadDir(folder)
			if err != nil {
				b.Fatal(err)
			}
			i := action.NewInstall(action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler)))
			i.DryRunStrategy, i.Replace, i.ReleaseName, i.Namespace = action.DryRunClient, true, name, namespace
			if _, err := i.RunWithContext(b.Context(), c, clone(values)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("trimtab", func(b *testing.B) {
		g, err := helm.NewGenerator(os.DirFS(folder), ".", helm.Options{})
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			set, err := g.Render(b.Context(), helm.Release{Namespace: namespace, Name: name, Values: clone(values)})
			if err != nil {
				b.Fatal(err)
			}
			if objects, err := set.Annotated(operator, nil); err != nil || len(objects) != 100 {
				b.Fatal(len(objects), err)
			}
		}
	})
}
