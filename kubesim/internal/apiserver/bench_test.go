package apiserver

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BenchmarkRequest measures requests as operators make them, with two clients watching.
func BenchmarkRequest(b *testing.B) {
	server, err := New([]*apiextensionsv1.CustomResourceDefinition{gem()})
	if err != nil {
		b.Fatal(err)
	}
	gems := "/apis/example.com/v1/namespaces/default/gems"
	secrets := "/api/v1/namespaces/default/secrets"
	for name, bench := range map[string]struct{ create, method, path, kind, body string }{
		"get gem":       {gems, http.MethodGet, gems + "/a", "", ""},
		"list gems":     {gems, http.MethodGet, gems, "", ""},
		"patch gem":     {gems, http.MethodPatch, gems + "/a", "application/merge-patch+json", `{"spec":{"facets":%d}}`},
		"apply status":  {gems, http.MethodPatch, gems + "/a/status?fieldManager=b", "application/apply-patch+yaml", `{"apiVersion":"example.com/v1","kind":"Gem","metadata":{"name":"a"},"status":{"seen":%d}}`},
		"get secret":    {secrets, http.MethodGet, secrets + "/a", "", ""},
		"patch secret":  {secrets, http.MethodPatch, secrets + "/a", "application/merge-patch+json", `{"stringData":{"n":"%d"}}`},
		"apply secret":  {secrets, http.MethodPatch, secrets + "/a?fieldManager=b", "application/apply-patch+yaml", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"stringData":{"n":"%d"}}`},
		"create delete": {"", "", secrets, "", ""},
	} {
		b.Run(name, func(b *testing.B) {
			db := server.Begin()
			if err := Populate(db); err != nil {
				b.Fatal(err)
			}
			t := &Transport{Server: server, Client: Client{DB: db}}
			for range 2 {
				for _, path := range []string{gems, secrets} {
					answer := do(b, t, http.MethodGet, path+"?watch=true", "", "")
					go func() { _, _ = io.Copy(io.Discard, answer.Body) }()
					defer answer.Body.Close()
				}
			}
			if bench.create != "" {
				do(b, t, http.MethodPost, bench.create, "application/json", seedObject(bench.create == gems))
			}
			n := 0
			for b.Loop() {
				n++
				if bench.method == "" {
					do(b, t, http.MethodPost, bench.path, "application/json", seedObject(false))
					do(b, t, http.MethodDelete, bench.path+"/a", "", "")
					continue
				}
				body := bench.body
				if body != "" {
					body = fmt.Sprintf(body, n)
				}
				do(b, t, bench.method, bench.path, bench.kind, body)
			}
		})
	}
}

func seedObject(gem bool) string {
	if gem {
		return `{"apiVersion":"example.com/v1","kind":"Gem","metadata":{"name":"a","labels":{"a":"b"}},"spec":{"facets":1,"color":"red"}}`
	}
	return `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"stringData":{"user":"me","password":"secret"}}`
}

func do(b *testing.B, t *Transport, method, path, kind, body string) *http.Response {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), method, "http://kubesim"+path, bytes.NewReader([]byte(body)))
	if err != nil {
		b.Fatal(err)
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	answer, err := t.RoundTrip(r)
	if err != nil {
		b.Fatal(err)
	}
	if answer.StatusCode >= http.StatusBadRequest {
		text, _ := io.ReadAll(answer.Body)
		b.Fatalf("%s %s: %s", method, path, text)
	}
	return answer
}

// gem is a custom kind with a schema.
func gem() *apiextensionsv1.CustomResourceDefinition {
	conditions := apiextensionsv1.JSONSchemaProps{
		Type: "array", XListType: new("map"), XListMapKeys: []string{"type"},
		Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", Required: []string{"type", "status"}, Properties: map[string]apiextensionsv1.JSONSchemaProps{
				"type": {Type: "string"}, "status": {Type: "string"}, "reason": {Type: "string"},
			},
		}},
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "gems.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "gems", Singular: "gem", Kind: "Gem", ListKind: "GemList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
							"facets": {Type: "integer"}, "color": {Type: "string"},
							"cut": {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"round"`)}},
						}},
						"status": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
							"seen": {Type: "integer"}, "conditions": conditions,
						}},
					},
				}},
			}},
		},
	}
}
