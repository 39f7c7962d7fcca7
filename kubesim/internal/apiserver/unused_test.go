package apiserver

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestAccess(t *testing.T) {
	get := func(resource, name string) Use {
		return Use{Verb: "get", Resource: resource, Namespace: "n", Name: name, Allowed: true}
	}
	tests := map[string]struct {
		why         string
		kind, rule  string
		justified   string
		uses        []Use
		want        []string
		wantsDenied []string
	}{
		"used":          {"a grant that was needed", "ClusterRole", `apiGroups: [""], resources: [secrets], verbs: [get]`, "", []Use{get("secrets", "a")}, nil, nil},
		"verb":          {"each verb counts", "ClusterRole", `apiGroups: [""], resources: [secrets], verbs: [get, list]`, "", []Use{get("secrets", "a")}, []string{"list secrets"}, nil},
		"group":         {"each group counts", "ClusterRole", `apiGroups: ["", apps], resources: [secrets], verbs: [get]`, "", []Use{get("secrets", "a")}, []string{"get secrets.apps"}, nil},
		"subresource":   {"a subresource is a resource of its own", "ClusterRole", `apiGroups: [apps], resources: [deployments, deployments/status], verbs: [get]`, "", []Use{{Verb: "get", Group: "apps", Resource: "deployments", Subresource: "status", Allowed: true}}, []string{"get deployments.apps"}, nil},
		"name":          {"a named grant is used for that name alone", "ClusterRole", `apiGroups: [""], resources: [secrets], resourceNames: [a, b], verbs: [get]`, "", []Use{get("secrets", "a")}, []string{`get secrets "b"`}, nil},
		"namespace":     {"a Role counts in its namespace alone", "Role", `apiGroups: [""], resources: [secrets], verbs: [get]`, "", []Use{get("secrets", "a")}, []string{"get secrets in m"}, nil},
		"any verb":      {"a wildcard is used if anything was", "ClusterRole", `apiGroups: [""], resources: [secrets, pods], verbs: ["*"]`, "", []Use{get("secrets", "a")}, []string{"* pods"}, nil},
		"anything":      {"a wildcard is used if anything was", "ClusterRole", `apiGroups: ["*"], resources: ["*"], verbs: ["*"]`, "", []Use{get("secrets", "a")}, nil, nil},
		"nothing":       {"a wildcard that nothing used", "ClusterRole", `apiGroups: ["*"], resources: ["*"], verbs: ["*"]`, "", nil, []string{"* *.*"}, nil},
		"any status":    {"a subresource of all resources", "ClusterRole", `apiGroups: [apps], resources: ["*/status"], verbs: [get]`, "", []Use{{Verb: "get", Group: "apps", Resource: "deployments", Subresource: "status", Allowed: true}}, nil, nil},
		"path":          {"what is no resource", "ClusterRole", `nonResourceURLs: [/metrics, "/healthz/*"], verbs: [get]`, "", []Use{{Verb: "get", Path: "/healthz/ping", Allowed: true}}, []string{"get /metrics"}, nil},
		"open paths":    {"everybody may read what there is", "ClusterRole", `nonResourceURLs: [/api, "/apis/*", "/version/", /healthz, "/healthz/*", /openapi], verbs: [get, "*"]`, "", nil, []string{"* /healthz/*", "get /healthz/*"}, nil},
		"own rights":    {"everybody may ask about himself", "ClusterRole", `apiGroups: [authorization.k8s.io], resources: [selfsubjectaccessreviews, subjectaccessreviews], verbs: [create]`, "", nil, []string{"create subjectaccessreviews.authorization.k8s.io"}, nil},
		"denied":        {"what was not allowed used nothing", "ClusterRole", `apiGroups: [""], resources: [secrets], verbs: [get]`, "", []Use{{Verb: "get", Resource: "secrets"}}, []string{"get secrets"}, []string{"get secrets"}},
		"justified":     {"the author says why", "ClusterRole", `apiGroups: [""], resources: [secrets], verbs: [get, list]`, "get secrets, list pods", nil, []string{"list secrets"}, nil},
		"all justified": {"for every verb", "ClusterRole", `apiGroups: [apps], resources: [deployments/scale], verbs: [get, list]`, "* deployments.apps/scale", nil, nil, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			roles, err := ReadRoles(fstest.MapFS{"r.yaml": {Data: []byte(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ` + test.kind + `
metadata: {name: r, namespace: m, annotations: {kubesim.trimtab.dev/justified: "` + test.justified + `"}}
rules: [{` + test.rule + `}]
`)}})
			if err != nil {
				t.Fatal(err)
			}
			want := &Access{Unused: test.want, Denied: test.wantsDenied}
			if d := cmp.Diff(want, roles.Access(test.uses)); d != "" {
				t.Errorf("%s (-want +got):\n%s", test.why, d)
			}
		})
	}
}

func TestRolesThatCannotBeRead(t *testing.T) {
	for name, test := range map[string]struct{ file, want string }{
		"none":   {"kind: Deployment\napiVersion: apps/v1", "read roles: the folder holds no Role or ClusterRole; generate them or leave it out to run as an administrator"},
		"broken": {"kind: [", "read roles: r.yaml: error converting YAML to JSON: yaml: line 1: did not find expected node content"},
		"field":  {"kind: Role\napiVersion: rbac.authorization.k8s.io/v1\nrules: 7", "read roles: r.yaml: json: cannot unmarshal number into Go struct field Role.rules of type []v1.PolicyRule"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadRoles(fstest.MapFS{"r.yaml": {Data: []byte(test.file)}})
			wantMessage(t, err, test.want)
		})
	}
}
