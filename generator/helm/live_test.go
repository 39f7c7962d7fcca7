package helm_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component/componenttest"
	"github.com/trimtab-dev/trimtab/internal/product"
	"github.com/trimtab-dev/trimtab/testenv"
)

// TestValues: a component has its values, the release is the component, and an update is an upgrade.
func TestValues(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start(map[string]string{
		"values.yaml":        "a: 1\nb: 2\n",
		"values.schema.json": `{"properties": {"a": {"type": "integer"}}}`,
		"templates/all.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: all}
data:
  values: "{{ .Values.a }} {{ .Values.b }}"
  release: "{{ .Release.Namespace }}/{{ .Release.Name }} {{ .Release.IsInstall }} {{ .Release.Revision }}"
`,
	})
	s.create(`{"a": "x"}`)
	s.says("values don't meet the specifications of the schema(s) in the following chart(s): demo: - at '/a': got string, want integer")
	if w := s.written("configmaps", "secrets"); len(w) > 0 {
		t.Errorf("it was written in spite of the schema: %v", w)
	}
	s.update(`{"a": 5}`)
	s.ready()
	s.data("all", "values", "5 2")
	s.data("all", "release", s.namespace+"/a true 1") // nothing was ever installed before
	s.update(`{"a": 6}`)
	s.data("all", "values", "6 2")
	s.data("all", "release", s.namespace+"/a false 2")
	s.ready()
	s.requests.Reset()
	s.passes("1")
	if w := s.written("configmaps"); len(w) > 0 {
		t.Errorf("at rest it was written: %v", w)
	}
}

// TestLookups: what a template looks up is watched: one object, and all of a kind.
func TestLookups(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.requeue = 20 * time.Millisecond
	s.start(map[string]string{"templates/found.yaml": `{{- $one := lookup "v1" "Secret" .Release.Namespace "other" }}
apiVersion: v1
kind: ConfigMap
metadata: {name: found}
data:
  namespace: {{ (lookup "v1" "Namespace" .Release.Namespace "default").metadata.name }}
  one: {{ if $one }}{{ $one.data.value | b64dec }}{{ else }}none{{ end }}
  all: "{{ range (lookup "v1" "Secret" .Release.Namespace "").items }}{{ .kind }} {{ .metadata.name }} {{ end }}"
`})
	s.create(`{}`)
	s.ready()
	s.data("found", "namespace", "default") // the namespace of the lookup is ignored
	s.data("found", "one", "none")
	s.data("found", "all", "")
	secret := &corev1.Secret{ObjectMeta: s.named("other"), Data: map[string][]byte{"value": []byte("x")}}
	if err := s.admin.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	s.data("found", "one", "x")
	s.data("found", "all", "Secret other ")
	s.patch(secret, `{"stringData":{"value":"z"}}`)
	s.data("found", "one", "z")
	if err := s.admin.Create(t.Context(), &corev1.Secret{ObjectMeta: s.named("second")}); err != nil {
		t.Fatal(err)
	}
	s.data("found", "all", "Secret other Secret second ")
	if err := s.admin.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	s.data("found", "one", "none")
	s.data("found", "all", "Secret second ")
	s.rests() // both watches have come to the deletion
	s.requests.Reset()
	s.rests()
	if reads := s.requests.Select(func(r testenv.Request) bool { return r.Resource == "secrets" }); len(reads) > 0 {
		t.Errorf("at rest it was read: %v", reads)
	}
}

// TestCapabilities: they are those of the cluster, and watched.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	crd := componenttest.CRD("Baz"+strings.ReplaceAll(s.namespace, "-", ""), apiextensionsv1.NamespaceScoped)
	kind := crd.Spec.Group + "/" + crd.Spec.Versions[0].Name + "/" + crd.Spec.Names.Kind
	s.start(map[string]string{"templates/can.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: can}
data:
  deployments: "{{ .Capabilities.APIVersions.Has "apps/v1/Deployment" }}"
  baz: "{{ .Capabilities.APIVersions.Has .Values.kind }}"
  version: {{ .Capabilities.KubeVersion.Version }}
`})
	s.create(`{"kind": "` + kind + `"}`)
	s.ready()
	s.data("can", "deployments", "true")
	s.data("can", "baz", "false")
	if m := (&corev1.ConfigMap{ObjectMeta: s.named("can")}); s.admin.Get(t.Context(), client.ObjectKeyFromObject(m), m) != nil || !strings.HasPrefix(m.Data["version"], "v1.") ||
		m.Data["version"] == "v1.20.0" {
		t.Errorf("version %q", m.Data["version"])
	}
	testenv.Install(t, s.cfg, crd)
	s.data("can", "baz", "true")
	if err := s.admin.Delete(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	s.data("can", "baz", "false")
}

// TestRandom: what a function such as randAlphaNum returned stays for the revision: after a restart, and when its Secret
// is deleted.
func TestRandom(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	files := map[string]string{"templates/random.yaml": `apiVersion: v1
kind: Secret
metadata: {name: random}
stringData:
  password: {{ randAlphaNum 20 }}
  second: {{ randAlphaNum 20 }}
  cert: {{ (genSelfSignedCert "x" nil nil 10).Cert | quote }}
  when: {{ now | quote }}
  id: {{ uuidv4 }}
  {{- if lookup "v1" "ConfigMap" .Release.Namespace "more" }}
  more: {{ randAlpha 7 }}
  {{- end }}
`, "templates/zfound.yaml": `apiVersion: v1
kind: Secret
metadata: {name: found}
data:
  {{- $found := lookup "v1" "Secret" .Release.Namespace "found" }}
  password: {{ if $found }}{{ $found.data.password }}{{ else }}{{ randAlphaNum 20 | b64enc }}{{ end }}
`}
	s.start(files)
	s.create(`{"a": 1}`)
	s.ready()
	read := func() map[string][]byte {
		t.Helper()
		secret := &corev1.Secret{ObjectMeta: s.named("random")}
		if err := s.admin.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
			t.Fatal(err)
		}
		return secret.Data
	}
	first := read()
	if string(first["password"]) == string(first["second"]) || len(first["password"]) != 20 {
		t.Errorf("passwords %q and %q", first["password"], first["second"])
	}
	same := func(when string) {
		t.Helper()
		s.ready()
		now := maps.Clone(read())
		delete(now, "more")
		if diff := cmp.Diff(first, now); diff != "" {
			t.Errorf("%s (-first +now):\n%s", when, diff)
		}
	}
	s.requests.Reset()
	s.start(files)
	s.passes("1")
	same("after a restart")
	if w := s.written("secrets"); len(w) > 0 {
		t.Errorf("after a restart it was written: %v", w)
	}
	if err := s.admin.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: s.named("more")}); err != nil {
		t.Fatal(err)
	}
	testenv.Wait(t, s.admin, &corev1.Secret{ObjectMeta: s.named("random")}, "one more", func(s *corev1.Secret) bool { return len(s.Data["more"]) == 7 })
	more := string(read()["more"])
	same("when another was drawn")
	if err := s.admin.Delete(t.Context(), &corev1.Secret{ObjectMeta: s.named("a-random")}); err != nil {
		t.Fatal(err)
	}
	testenv.Wait(t, s.admin, &corev1.Secret{ObjectMeta: s.named("a-random")}, "the Secret again", func(*corev1.Secret) bool { return true })
	s.passes("2")
	same("when the Secret with the results was deleted")
	if now := string(read()["more"]); now != more {
		t.Errorf("%q was drawn, then %q", more, now)
	}
	s.update(`{"a": 2}`)
	testenv.Wait(t, s.admin, &corev1.Secret{ObjectMeta: s.named("random")}, "another revision", func(s *corev1.Secret) bool {
		return string(s.Data["password"]) != string(first["password"]) && string(s.Data["id"]) != string(first["id"])
	})
	s.ready()
}

// TestDefinitions: what is in crds/ is updated with the chart, and stays as long as there are objects of the kind.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	group := s.namespace + ".example.org"
	crd := func(more string) map[string]string {
		return map[string]string{"crds/kinds.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tickets.` + group + `}
spec:
  group: ` + group + `
  names: {kind: Ticket, plural: tickets, singular: ticket, listKind: TicketList}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {a: {type: string}` + more + `}}}}}
`}
	}
	s.start(crd(""))
	s.create(`{}`)
	s.ready()
	ticket := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": "Ticket", "metadata": map[string]any{"namespace": s.namespace, "name": "t"}, "spec": map[string]any{"a": "x"},
	}}
	if err := s.admin.Create(t.Context(), ticket); err != nil {
		t.Fatal(err)
	}
	s.start(crd(", b: {type: string}"))
	definition := &apiextensionsv1.CustomResourceDefinition{}
	definition.Name = "tickets." + group
	admin := testenv.Client(t, s.cfg, apiextensionsv1.AddToScheme)
	testenv.Wait(t, admin, definition, "the other schema", func(d *apiextensionsv1.CustomResourceDefinition) bool {
		return len(d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties) == 2
	})
	s.ready()
	if err := s.admin.Delete(t.Context(), s.product()); err != nil {
		t.Fatal(err)
	}
	testenv.Wait(t, s.admin, s.product(), "the deletion to be blocked", func(p *product.Product) bool { return strings.Contains(p.Status.Message, "Ticket") })
	if err := s.admin.Delete(t.Context(), ticket); err != nil {
		t.Fatal(err)
	}
	testenv.Gone(t, s.admin, s.product(), "the component to be gone")
	testenv.Gone(t, admin, definition, "the definition to be gone")
}

// TestLostInventory: a component whose inventory is lost is rendered to find what it has, also for its deletion.
func TestLostInventory(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.kinds = []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("ConfigMap")}
	files := map[string]string{"templates/a.yaml": configMapYAML + "data: {install: \"{{ .Release.IsInstall }}\"}\n"}
	s.start(files)
	s.create(`{}`)
	s.ready()
	s.stop()
	if err := s.admin.Status().Patch(t.Context(), s.product(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"inventory":null}}`))); err != nil {
		t.Fatal(err)
	}
	if err := s.admin.Delete(t.Context(), s.product()); err != nil {
		t.Fatal(err)
	}
	s.start(files)
	testenv.Gone(t, s.admin, s.product(), "the component to be gone")
	testenv.Gone(t, s.admin, &corev1.ConfigMap{ObjectMeta: s.named("a")}, "what it had to be gone")
}

// TestSteady: a component of 200 objects at rest is not rendered, and sends no request.
func TestSteady(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.requeue, s.seen = 50*time.Millisecond, make(chan struct{})
	s.start(map[string]string{
		"values.yaml": "n: 200\n",
		"templates/all.yaml": `{{ range until (int .Values.n) }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ $.Release.Name }}-{{ . }}"}
data: {text: {{ $.Values | toJson | quote }}}
{{ end }}`,
	})
	s.create(`{"n": 200}`)
	s.ready()
	s.rests()
	renderings := s.renderings.Load()
	s.requests.Reset()
	s.rests()
	if sent := s.requests.Select(func(r testenv.Request) bool { return r.Verb != "watch" }); len(sent) > 0 {
		t.Errorf("at rest it sent %v", sent)
	}
	if now := s.renderings.Load(); renderings == 0 || now != renderings {
		t.Errorf("%d renderings, and %d at rest", renderings, now-renderings)
	}
}
