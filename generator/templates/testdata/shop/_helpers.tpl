{{- define "labels" -}}
app.kubernetes.io/name: shop
app.kubernetes.io/instance: {{ name }}
{{- end -}}
